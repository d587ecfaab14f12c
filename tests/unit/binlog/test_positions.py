"""T19: positions of events when files roll over, have other names, or are large."""

import pytest

from databus_binlog import Decoder


def rotate(wire, file: str, offset: int = 4, **place: int) -> bytes:
    return wire.event(4, offset.to_bytes(8, "little") + file.encode(), **place)


@pytest.mark.parametrize("file", ["binlog.1000000", "other-bin.000001", "b"])
def test_t19_the_log_continues_in_a_file_of_any_name(wire, file):
    xid = wire.event(16, bytes(8), next_position=500)
    decoder = Decoder(file="binlog.999999", offset=400)
    real, fake = rotate(wire, file), rotate(wire, file, flags=0x20)
    stream = wire.packets(wire.head(), xid, real, fake, wire.head(), wire.event(16, bytes(8), next_position=127))
    _, before, gone, again, _, after = decoder.feed(stream)
    assert (before.file, before.end, gone.file, gone.next_file) == ("binlog.999999", 500, "binlog.999999", file)
    assert (again.artificial, again.next_file) == (True, file)
    assert (after.file, after.start, after.end) == (file, 127 - len(xid), 127)
    assert (decoder.file, decoder.offset) == (file, 127)


def test_t19_offsets_start_over_in_the_file_after_one_of_more_than_4_gib(wire):
    xid = wire.event(16, bytes(8), next_position=0x10)
    decoder = Decoder(file="binlog.000001", offset=0x1_0000_0010 - len(xid))
    stream = wire.packets(wire.head(), xid, rotate(wire, "binlog.000002"), wire.event(16, bytes(8), next_position=200))
    _, far, _, near = decoder.feed(stream)
    assert (far.start, far.end) == (0x1_0000_0010 - len(xid), 0x1_0000_0010)
    assert (near.file, near.start, near.end) == ("binlog.000002", 200 - len(xid), 200)


def test_t19_reading_may_begin_beyond_4_gib(wire):
    """As after a GTID: the server sends its start offset in 64 bits."""
    xid = wire.event(16, bytes(8), next_position=0x2000)
    decoder = Decoder()
    stream = wire.packets(rotate(wire, "binlog.000007", 0x5_0000_1000, flags=0x20), wire.head(), xid)
    *_, found = decoder.feed(stream)
    assert (found.file, found.end) == ("binlog.000007", 0x5_0000_2000)

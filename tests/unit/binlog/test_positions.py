"""T19: events have the right positions when the log continues in another file, and beyond 4 GiB."""

import pytest

from databus_binlog import Decoder


def rotate(wire, file: str, offset: int = 4, **header: int) -> bytes:
    return wire.event(4, offset.to_bytes(8, "little") + file.encode(), **header)


@pytest.mark.parametrize("file", ["binlog.1000000", "other-bin.000001", "b"])
def test_t19_the_next_file_may_have_any_name(wire, file):
    xid = wire.event(16, bytes(8), next_position=500)
    decoder = Decoder(file="binlog.999999", offset=400)
    logged, artificial = rotate(wire, file), rotate(wire, file, flags=0x20)
    next_xid = wire.event(16, bytes(8), next_position=127)
    stream = wire.packets(wire.head(), xid, logged, artificial, wire.head(), next_xid)
    _, before, at_end, at_start, _, after = decoder.feed(stream)
    assert (before.file, before.end) == ("binlog.999999", 500)
    assert (at_end.artificial, at_end.file, at_end.next_file) == (False, "binlog.999999", file)
    assert (at_start.artificial, at_start.next_file) == (True, file)
    assert (after.file, after.start, after.end) == (file, 127 - len(xid), 127)
    assert (decoder.file, decoder.offset) == (file, 127)


def test_t19_offsets_start_over_in_the_file_after_a_file_of_more_than_4_gib(wire):
    xid = wire.event(16, bytes(8), next_position=0x10)
    decoder = Decoder(file="binlog.000001", offset=0x1_0000_0010 - len(xid))
    stream = wire.packets(wire.head(), xid, rotate(wire, "binlog.000002"), wire.event(16, bytes(8), next_position=200))
    _, last, _, first = decoder.feed(stream)
    assert (last.start, last.end) == (0x1_0000_0010 - len(xid), 0x1_0000_0010)
    assert (first.file, first.start, first.end) == ("binlog.000002", 200 - len(xid), 200)


def test_t19_a_dump_may_start_beyond_4_gib(wire):
    """A binlog stream that was requested by GTID starts with a ROTATE event, which has the offset in 64 bits."""
    xid = wire.event(16, bytes(8), next_position=0x2000)
    decoder = Decoder()
    stream = wire.packets(rotate(wire, "binlog.000007", 0x5_0000_1000, flags=0x20), wire.head(), xid)
    *_, found = decoder.feed(stream)
    assert (found.file, found.end) == ("binlog.000007", 0x5_0000_2000)

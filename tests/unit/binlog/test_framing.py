"""The decoder cuts a dump's packets into events, computes their positions in the file, and raises server errors."""

import pytest

from databus_binlog import (
    CorruptEvent,
    Decoder,
    DuplicateServerId,
    InvalidPosition,
    MissingPrivilege,
    PositionPurged,
    PositionUnknown,
    Retryable,
    ServerRefused,
    Xid,
)


def xid(wire, number, **header):
    return wire.event(16, number.to_bytes(8, "little"), **header)


def test_pieces_of_any_size_give_the_same_events(wire):
    stream = wire.packets(wire.head(), *(xid(wire, n) for n in range(5)))
    expected = list(Decoder().feed(stream))
    assert [event.xid for event in expected[1:]] == [0, 1, 2, 3, 4]
    for size in range(1, len(stream)):
        decoder = Decoder()
        pieces = [decoder.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
        assert [event for piece in pieces for event in piece] == expected
        assert not decoder.pending


def test_with_by_statement_a_call_ends_after_each_statement_that_may_be_ddl(wire):
    statement = wire.event(2, bytes(13) + b"\0" + b"ALTER TABLE t ADD a INT")
    stream = wire.packets(wire.head(), xid(wire, 1), statement, xid(wire, 2), statement)
    decoder = Decoder(by_statement=True)
    first = list(decoder.feed(stream))
    assert [type(event).__name__ for event in first] == ["FormatDescription", "Xid", "Query"]
    assert (decoder.more, decoder.drained) == (True, False)
    second = list(decoder.feed(b""))
    assert [type(event).__name__ for event in second] == ["Xid", "Query"]
    assert (decoder.more, decoder.drained) == (True, True)
    assert (list(decoder.feed(b"")), decoder.more) == ([], False)
    assert len(list(Decoder().feed(stream))) == len(first + second)


@pytest.mark.parametrize("excess", [-1, 0, 1, 0xFFFFFF])
def test_an_event_may_span_packets(wire, excess):
    # If `excess` is 0, the event, with its status, header and checksum, just fills the longest packet.
    size = 0xFFFFFF - 1 - 19 - 4 + excess
    stream = wire.packets(wire.head(), wire.event(160, b"x" * size), xid(wire, 7))
    decoder = Decoder()
    found = [event for at in range(0, len(stream), 1 << 20) for event in decoder.feed(stream[at : at + (1 << 20)])]
    while decoder.more:
        found += decoder.feed(b"")
    assert len(found[1].query) == size
    assert found[2].xid == 7


def test_a_reused_buffer_is_read_only_up_to_the_given_size(wire):
    buffer = bytearray(4096)
    decoder = Decoder()
    for content in (wire.packets(wire.head()), wire.packets(xid(wire, 1)), wire.packets(xid(wire, 2))):
        buffer[: len(content)] = content
        [event] = decoder.feed(memoryview(buffer), len(content))
    assert event.xid == 2


# T19: an event's header has only 32 bits for its position
def test_t19_positions_continue_beyond_4_gib(wire):
    decoder = Decoder(file="binlog.000001", offset=0xFFFFFF00)
    decoder.feed(wire.packets(wire.head()))
    size = len(xid(wire, 1))
    ends = [0xFFFFFF00 + size * n for n in range(1, 12)]
    events = decoder.feed(wire.packets(*(xid(wire, 1, next_position=end & 0xFFFFFFFF) for end in ends)))
    assert [event.end for event in events] == ends
    assert [event.start for event in events] == [end - size for end in ends]


def test_an_event_without_a_position_starts_where_the_previous_event_ended(wire):
    decoder = Decoder(file="binlog.000001", offset=400)
    decoder.feed(wire.packets(wire.head()))
    size = len(xid(wire, 1))
    first, second = decoder.feed(wire.packets(xid(wire, 1), xid(wire, 2, next_position=400 + 2 * size)))
    assert (first.start, first.end, second.start) == (400, 400 + size, 400 + size)


def test_the_first_rotate_may_have_a_checksum_or_not(wire):
    rotate = wire.event(4, (4).to_bytes(8, "little") + b"binlog.000009", flags=0x20)
    for event in (rotate, wire.bare(rotate)):
        decoder = Decoder()
        [found] = decoder.feed(wire.packets(event))
        assert (found.next_file, found.position, found.artificial) == ("binlog.000009", 4, True)
        assert (decoder.file, decoder.offset) == ("binlog.000009", 4)


def test_the_packet_at_the_end_of_the_log_finishes_the_dump(wire):
    decoder = Decoder()
    decoder.feed(wire.packets(wire.head()) + wire.packet(b"\xfe\0\0\2\0"))
    assert decoder.finished


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        (1236, "Could not find first log file name in binary log index file", PositionPurged),
        (1236, "The source purged required binary logs. Replicate the missing transactions", PositionPurged),
        (
            1236,
            "Error: connecting slave requested to start from GTID 0-1-9, which is not in the master's binlog"
            ". could not find GTID state",
            PositionUnknown,
        ),
        (1236, "Client requested source to start replication from position > file size", InvalidPosition),
        (1236, "A replica with the same server_uuid/server_id as this replica has connected", DuplicateServerId),
        (1236, "log event entry exceeded max_allowed_packet", ServerRefused),
        (1227, "Access denied; you need (at least one of) the REPLICATION SLAVE privilege(s)", MissingPrivilege),
        (1053, "Server shutdown in progress", Retryable),
        (1927, "Connection was killed", Retryable),
    ],
)
def test_an_error_packet_raises_the_error_for_its_code_and_message(wire, code, message, error):
    decoder = Decoder()
    stream = wire.packets(wire.head(), xid(wire, 1))
    stream += wire.packet(b"\xff" + code.to_bytes(2, "little") + b"#HY000" + message.encode())
    events = decoder.feed(stream)
    assert isinstance(list(events)[-1], Xid)  # the event before the error is not lost
    with pytest.raises(error, match=f"server error {code}"):
        decoder.feed(b"")


def test_a_changed_bit_is_an_error(wire):
    event = bytearray(xid(wire, 1))
    event[20] ^= 4
    decoder = Decoder(file="binlog.000001")
    decoder.feed(wire.packets(wire.head()))
    with pytest.raises(CorruptEvent, match=r"wrong checksum of XID event at binlog\.000001:"):
        decoder.feed(wire.packets(bytes(event)))

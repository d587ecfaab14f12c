"""T20: since 11.4, MariaDB writes transactions whose events lack positions; since 12.3, it writes PARTIAL_ROW_DATA."""

from itertools import pairwise

import pytest

from databus_binlog import CorruptEvent, Decoder, Rows

PARTIAL_ROW_DATA, GTID, XID = 172, 162, 16


def gtid(wire, number: int, **header: int) -> bytes:
    return wire.event(GTID, number.to_bytes(8, "little") + bytes(11), **header)


def xid(wire, **header: int) -> bytes:
    return wire.event(XID, bytes(8), **header)


def test_t20_events_in_a_transaction_need_no_position(wire):
    table, rows = wire.table("03", extra="010180"), wire.inserted("00 07000000")
    begin = gtid(wire, 1, next_position=1000)
    committed = 1000 + len(table) + len(rows) + len(xid(wire))
    second_begun = committed + len(begin)
    decoder = Decoder(flavor="mariadb", file="binlog.000001", offset=1000 - len(begin))
    decoder.feed(wire.packets(wire.head(mariadb=True)))
    first = decoder.feed(wire.packets(begin, table, rows, xid(wire)))
    assert [(event.start, event.end) for event in first] == [
        (1000 - len(begin), 1000),
        (1000 + len(table), 1000 + len(table) + len(rows)),
        (1000 + len(table) + len(rows), committed),
    ]
    events = gtid(wire, 2, next_position=second_begun), table, rows, xid(wire, next_position=4711)
    begin_again, _, commit = decoder.feed(wire.packets(*events))
    assert (begin_again.start, begin_again.end) == (committed, second_begun)
    assert (commit.start, commit.end) == (4711 - len(xid(wire)), 4711)


@pytest.mark.parametrize(
    ("flags", "fields"),
    [
        ("00 10", "2a000000"),
        ("02 10", "2a000000"),  # after an id of a group commit
        ("00 11", "01 2a000000"),  # after a number of engines
        ("20 14", "0900000000000000 2a000000"),  # after the sequence of the start of an ALTER
        ("00 00", "2a000000"),  # not there
    ],
)
def test_gtid_events_name_the_connection(wire, flags, fields):
    first, more = bytes.fromhex(flags)
    commit_id = bytes(8) if first & 2 else b""
    body = (7).to_bytes(8, "little") + bytes(4) + bytes([first]) + commit_id + bytes([more]) + bytes.fromhex(fields)
    decoder = Decoder(flavor="mariadb", file="binlog.000001", offset=4)
    decoder.feed(wire.packets(wire.head(mariadb=True)))
    [event] = decoder.feed(wire.packets(wire.event(GTID, body)))
    assert (event.gtid, event.thread_id) == ("0-1-7", 42 if more else 0)


def test_a_gtid_event_without_its_connection_is_truncated(wire):
    decoder = Decoder(flavor="mariadb", file="binlog.000001", offset=4)
    decoder.feed(wire.packets(wire.head(mariadb=True)))
    with pytest.raises(CorruptEvent, match=r"GTID_MARIADB event at .* is truncated"):
        decoder.feed(wire.packets(wire.event(GTID, bytes(13) + b"\x10\x2a\x00")))


@pytest.fixture
def parts(wire):
    """Cut an insert without a checksum into `count` PARTIAL_ROW_DATA events with checksums."""

    def run(count: int, text: bytes = b"x" * 300) -> list[bytes]:
        value = b"\0" + len(text).to_bytes(2, "little") + text
        event = wire.bare(wire.inserted(value.hex()))
        cuts = [len(event) * part // count for part in range(count + 1)]
        pieces = [event[start:end] for start, end in pairwise(cuts)]
        heads = [count.to_bytes(4, "little") + number.to_bytes(4, "little") for number in range(1, count + 1)]
        first = b"\1" + len(event).to_bytes(8, "little")
        flags = [first, *[b"\0"] * (count - 1)]
        return [wire.event(PARTIAL_ROW_DATA, b"".join(part)) for part in zip(heads, flags, pieces, strict=True)]

    return run


@pytest.fixture
def table(wire) -> bytes:
    """The TABLE_MAP event of a table with one column, a BLOB."""
    return wire.table("fc", "02", extra="02013f")


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_t20_a_rows_event_is_assembled_from_its_parts(wire, decode, parts, table, count):
    rows, small, _ = decode(table, *parts(count), table, wire.inserted("00 0100 79"), xid(wire), mariadb=True)
    assert isinstance(rows, Rows)
    assert (rows.action, rows.images()) == ("insert", [[b"x" * 300]])
    assert small.images() == [[b"y"]]


def test_t20_a_heartbeat_may_come_between_parts(wire, decode, parts, table):
    first, second = parts(2)
    _, rows = decode(table, first, wire.event(27, b"binlog.000001"), second, mariadb=True)
    assert rows.images() == [[b"x" * 300]]


def test_t20_several_rows_events_in_parts_may_follow_each_other(decode, parts, table):
    found = decode(table, *parts(3), table, *parts(2, b"z"), mariadb=True)
    assert [rows.images() for rows in found] == [[[b"x" * 300]], [[b"z"]]]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([1, 2], "part 2 of 3 follows part 0"),
        ([0, 2], "part 3 of 3 follows part 1"),
        ([0, 1, 1], "part 2 of 3 follows part 2"),
        ([0, 0], None),
        ([0, 1, 0], None),
    ],
)
def test_t20_parts_out_of_order_are_an_error(decode, parts, table, order, message):
    with pytest.raises(CorruptEvent, match=message):
        decode(table, *(parts(3)[index] for index in order), mariadb=True)


def test_t20_missing_parts_are_an_error_at_the_next_event(wire, decode, parts, table):
    rotate = wire.event(4, (4).to_bytes(8, "little") + b"binlog.000009")
    others = (xid(wire), table, wire.inserted("00 0100 79"), gtid(wire, 2), rotate, wire.head(mariadb=True))
    for following in (*others, parts(2)[1]):
        with pytest.raises(CorruptEvent):
            decode(table, *parts(3)[:2], following, mariadb=True)


def test_t20_parts_that_make_no_rows_event_are_an_error(wire, decode, table):
    head = (1).to_bytes(4, "little") * 2
    for body in (head + b"\0", head + b"\0" + xid(wire)[:-4], head + b"\0" + bytes(40), head[:7], b"", head + b"\1\0"):
        with pytest.raises(CorruptEvent, match="PARTIAL_ROW_DATA event at"):
            decode(table, wire.event(PARTIAL_ROW_DATA, body), mariadb=True)


def test_t20_parts_whose_size_differs_from_the_announced_size_are_an_error(wire, decode, parts, table):
    first, second = parts(2)
    longer = first[19:-4].replace(first[28:36], (10_000).to_bytes(8, "little"), 1)
    with pytest.raises(CorruptEvent, match="PARTIAL_ROW_DATA event at"):
        decode(table, wire.event(PARTIAL_ROW_DATA, longer), second, mariadb=True)


def test_t20_a_file_that_ends_between_parts_is_an_error(wire, parts, table):
    decoder = Decoder(flavor="mariadb", file="binlog.000001")
    decoder.feed_file(b"\xfebin" + wire.head(mariadb=True) + table + parts(2)[0])
    with pytest.raises(CorruptEvent, match="ends inside the event"):
        decoder.finish()

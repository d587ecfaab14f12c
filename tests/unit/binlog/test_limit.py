"""A rows event above row_limit is replaced by a marker, OversizedRows; a statement above it is an error."""

import ctypes
import zlib
from itertools import pairwise
from pathlib import Path

import pytest

from databus_binlog import (
    CorruptEvent,
    Decoder,
    MissingMetadata,
    OversizedRows,
    OversizedStatement,
    Rows,
    RowsQuery,
    Xid,
)

LIMIT = 200
WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS, PARTIAL_UPDATE_ROWS = 30, 31, 32, 39
QUERY, APPEND_BLOCK, EXECUTE_LOAD_QUERY, ROWS_QUERY, TRANSACTION_PAYLOAD = 2, 9, 18, 29, 40
ANNOTATE_ROWS, QUERY_COMPRESSED, WRITE_ROWS_COMPRESSED_V1, PARTIAL_ROW_DATA = 160, 165, 166, 172
SEMI_SYNC = b"\0\xef\1"


@pytest.fixture
def table(wire) -> bytes:
    """The TABLE_MAP event of a table with one column, a BLOB."""
    return wire.table("fc", "02", extra="02013f")


@pytest.fixture
def blob(wire):
    """Build an insert of one value of this size."""
    return lambda size, byte=b"x": wire.inserted((b"\0" + size.to_bytes(2, "little") + byte * size).hex())


@pytest.fixture
def transaction(wire, table, blob) -> list[bytes]:
    """A transaction with three inserts, the second of them above the limit."""
    xid = wire.event(16, (77).to_bytes(8, "little"))
    return [table, blob(1, b"a"), table, blob(1000), table, blob(1, b"b"), xid]


def payload(wire, events: list[bytes]) -> bytes:
    """Return a TRANSACTION_PAYLOAD event with these events, not compressed."""
    return wire.event(TRANSACTION_PAYLOAD, b"\x02\x03\xfc\xff\x00\0" + b"".join(map(wire.bare, events)))


def summary(events) -> list[object]:
    """Return Rows as images; OversizedRows as action, size, and whether it ends a statement; Xid as its number."""
    return [
        event.images()
        if isinstance(event, Rows)
        else (event.action, event.size, event.statement_end)
        if isinstance(event, OversizedRows)
        else event.xid
        for event in events
    ]


def test_a_marker_has_table_position_and_size(wire, table, transaction):
    decoder = Decoder(file="binlog.000001", offset=1000, row_limit=LIMIT)
    decoder.feed(wire.packets(wire.head()))
    events = decoder.feed(wire.packets(*transaction))
    first, marker, second, xid = events
    start = 1000 + sum(map(len, transaction[:3]))
    assert marker == OversizedRows(
        1, 1, "binlog.000001", start, start + len(transaction[3]), first.table, "insert", len(transaction[3]), True
    )
    assert list(events.tables) == [marker.table]
    assert (first.images(), second.images(), xid.xid) == ([[b"a"]], [[b"b"]], 77)
    assert (len(events), events.images) == (4, 2)  # the marker has no row image
    assert second.start == marker.end + len(table)


def test_the_limit_is_the_size_of_the_largest_event_that_is_decoded(decode, table, blob):
    size = len(blob(300))
    assert summary(decode(table, blob(300), row_limit=size)) == [[[b"x" * 300]]]
    assert summary(decode(table, blob(300), row_limit=size - 1)) == [("insert", size, True)]
    for no_limit in (None, 0):
        assert summary(decode(table, blob(300), row_limit=no_limit)) == [[[b"x" * 300]]]


@pytest.mark.parametrize(
    ("kind", "action"),
    [(WRITE_ROWS, "insert"), (UPDATE_ROWS, "update"), (DELETE_ROWS, "delete"), (PARTIAL_UPDATE_ROWS, "update")],
)
def test_every_kind_of_rows_is_limited(wire, decode, table, blob, kind, action):
    event = wire.event(kind, blob(1000)[19:-4])
    assert summary(decode(table, event, row_limit=LIMIT)) == [(action, len(event), True)]


def streams(wire, events: list[bytes]) -> dict[str, tuple[bytes, dict[str, object]]]:
    """For each form in which a log can arrive, return its bytes and the decoder's options for them."""
    head = wire.head()
    return {
        "packets": (wire.packets(head, *events), {}),
        "semi-sync": (b"".join(wire.packet(SEMI_SYNC + event) for event in [head, *events]), {"semi_sync": True}),
        "payload": (wire.packets(head, payload(wire, events)), {}),
        "file": (b"\xfebin" + head + b"".join(events), {}),
    }


@pytest.mark.parametrize("way", ["packets", "semi-sync", "payload", "file"])
def test_a_stream_with_any_cut_gives_the_same_events(wire, transaction, cuts, way):
    data, options = streams(wire, transaction)[way]

    def decoded(at: list[int]) -> list[object]:
        decoder = Decoder(row_limit=LIMIT, **options)
        feed = decoder.feed_file if way == "file" else decoder.feed
        found = [event for start, end in pairwise([0, *at, len(data)]) for event in feed(data[start:end])]
        assert not decoder.pending
        assert (decoder.take_ack() is not None) == (way == "semi-sync")
        return found

    expected = decoded([])
    size = len(transaction[3]) - (4 if way == "payload" else 0)
    assert summary(expected[1:]) == [[[b"a"]], ("insert", size, True), [[b"b"]], 77]
    for at in cuts(len(data)):
        assert decoded([at]) == expected, at
    for size in (1, 2, 3, 5, 17, 64, 100):
        assert decoded([*range(size, len(data), size)]) == expected, size


@pytest.mark.parametrize("excess", [-1, 0, 1, 0xFFFFFF])
def test_a_large_event_may_span_packets(wire, table, transaction, excess):
    # If `excess` is 0, the event, with its status, header and checksum, just fills the longest packet.
    size = 0xFFFFFF - 1 - 19 - 10 - 4 + excess
    large = wire.event(WRITE_ROWS, bytes.fromhex("070000000000 0100 0200") + bytes(size))
    stream = wire.packets(wire.head(), table, large, *transaction)
    decoder = Decoder(row_limit=LIMIT)
    found = [event for at in range(0, len(stream), 1 << 18) for event in decoder.feed(stream[at : at + (1 << 18)])]
    assert summary(found[1:3]) == [("insert", len(large), True), [[b"a"]]]


@pytest.mark.parametrize("way", ["packets", "file"])
def test_a_changed_bit_in_a_skipped_event_is_an_error(wire, transaction, way):
    size = len(transaction[3])
    for at in (25, 30, 64, 500, *range(size - 5, size)):
        changed = bytearray(transaction[3])
        changed[at] ^= 8
        data, _ = streams(wire, [*transaction[:3], bytes(changed), *transaction[4:]])[way]
        decoder = Decoder(row_limit=LIMIT)
        feed = decoder.feed_file if way == "file" else decoder.feed
        assert summary([*feed(data[:300])][1:]) == [[[b"a"]]]
        with pytest.raises(CorruptEvent, match="wrong checksum of WRITE_ROWS event"):
            feed(data[300:])


def test_a_compressed_transaction_with_a_changed_bit_in_a_skipped_event_has_no_commit(wire, transaction):
    data, _ = streams(wire, transaction)["payload"]
    changed = bytearray(data)
    changed[700] ^= 8
    decoder = Decoder(row_limit=LIMIT)
    found = decoder.feed(changed)
    with pytest.raises(CorruptEvent, match=r"TRANSACTION_PAYLOAD event .* wrong checksum"):
        decoder.feed(b"")
    assert not any(isinstance(event, Xid) for event in found)


def test_a_log_without_checksums_is_read_correctly_after_a_skipped_event(wire, transaction):
    decoder = Decoder(row_limit=LIMIT)
    decoder.feed(wire.packets(wire.head(checksum=False)))
    found = decoder.feed(wire.packets(*map(wire.bare, transaction)))
    assert summary(found) == [[[b"a"]], ("insert", len(transaction[3]) - 4, True), [[b"b"]], 77]


def test_unwanted_tables_leave_no_marker(decode, transaction):
    assert summary(decode(*transaction, wanted=lambda *_: False, row_limit=LIMIT)) == [77]


def test_rows_above_the_limit_cause_the_same_errors_as_other_rows(wire, decode, table, blob):
    with pytest.raises(MissingMetadata, match=r"column 0 of lab\.t"):
        decode(wire.table("fc", "02"), blob(1000), row_limit=LIMIT)
    with pytest.raises(CorruptEvent, match="belong to no table map"):
        decode(blob(1000), row_limit=LIMIT)
    with pytest.raises(CorruptEvent, match="belong to no table map"):  # the first rows ended the table map's statement
        decode(table, blob(1000), blob(1), row_limit=LIMIT)


@pytest.mark.parametrize("kind", [ROWS_QUERY, ANNOTATE_ROWS, APPEND_BLOCK])
def test_rows_query_annotate_rows_and_append_block_are_skipped_above_the_limit(wire, decode, table, blob, kind):
    event = wire.event(kind, b"\0" * 1000)
    assert summary(decode(event, table, blob(1), row_limit=LIMIT)) == [[[b"x"]]]
    events = list(decode(event, table, blob(1)))
    assert [type(event) for event in events] == ([Rows] if kind == APPEND_BLOCK else [RowsQuery, Rows])


def test_a_table_map_above_the_limit_is_read(wire, decode, blob):
    table = wire.table("03" * 200, extra="0119" + "00" * 25, columns=200)
    assert len(table) > LIMIT
    rows = wire.inserted((b"\xff" * 25).hex(), columns=200)
    assert summary(decode(table, rows, row_limit=LIMIT)) == [[[None] * 200]]


@pytest.mark.parametrize("kind", [QUERY, EXECUTE_LOAD_QUERY])
def test_a_statement_above_the_limit_is_an_error_before_all_of_it_has_arrived(wire, kind):
    decoder = Decoder(file="binlog.000001", offset=700, row_limit=LIMIT)
    decoder.feed(wire.packets(wire.head()))
    event = wire.event(kind, bytes(1000))
    with pytest.raises(OversizedStatement, match=r"at binlog\.000001:700 .* 1023 bytes, above row_limit \(200\)"):
        decoder.feed(wire.packets(event)[:50])


def zipped(data: bytes) -> bytes:
    """Compress data as MariaDB does."""
    return b"\x82" + len(data).to_bytes(2, "big") + zlib.compress(data)


def test_the_limit_applies_to_the_inflated_size_of_mariadbs_compressed_events(wire, decode, table):
    body = bytes.fromhex("070000000000 0100 01 ff") + zipped(b"\0\xe8\3" + bytes(1000))
    event = wire.event(WRITE_ROWS_COMPRESSED_V1, body)
    assert len(event) < LIMIT
    assert summary(decode(table, event, mariadb=True)) == [[[bytes(1000)]]]
    assert summary(decode(table, event, mariadb=True, row_limit=1003)) == [[[bytes(1000)]]]
    assert summary(decode(table, event, mariadb=True, row_limit=LIMIT)) == [("insert", 1003, True)]
    statement = wire.event(QUERY_COMPRESSED, bytes(14) + zipped(b"CREATE" + b" " * 1000))
    with pytest.raises(OversizedStatement, match="1006 bytes"):
        decode(statement, mariadb=True, row_limit=LIMIT)


def test_the_limit_applies_to_the_inflated_size_of_compressed_columns(wire, decode):
    table = wire.table("8c8c", "0202", extra="02013f", columns=2)
    value = zipped(bytes(600))
    event = wire.inserted((b"\0" + (len(value).to_bytes(2, "little") + value) * 2).hex(), columns=2)
    assert summary(decode(table, event, row_limit=1200)) == [[[bytes(600)] * 2]]
    found = decode(table, event, table, wire.inserted("00 0100 00 0100 00", columns=2), row_limit=1199)
    assert summary(found) == [("insert", 1200, True), [[b"", b""]]]


@pytest.mark.parametrize("cuts", [[], [5], [60], [300, 600], [5, 10, 15, 20, 25, 30], [*range(50, 1000, 50)]])
def test_the_limit_applies_to_a_rows_event_that_is_assembled_from_parts(wire, decode, table, blob, cuts):
    rows = wire.bare(blob(1000))
    pieces = [rows[start:end] for start, end in pairwise([0, *cuts, len(rows)])]
    parts = [
        wire.event(PARTIAL_ROW_DATA, len(pieces).to_bytes(4, "little") + number.to_bytes(4, "little") + b"\0" + piece)
        for number, piece in enumerate(pieces, 1)
    ]
    found = decode(table, *parts, table, blob(1), mariadb=True, row_limit=LIMIT)
    assert summary(found) == [("insert", len(rows), True), [[b"x"]]]
    assert summary(decode(table, *parts, mariadb=True, row_limit=2000)) == [[[b"x" * 1000]]]
    if len(parts) > 1:
        with pytest.raises(CorruptEvent):
            decode(table, *parts[:-1], table, mariadb=True, row_limit=LIMIT)


def test_a_log_that_ends_inside_a_skipped_event_is_an_error(wire, transaction):
    data, _ = streams(wire, transaction)["file"]
    decoder = Decoder(file="some", row_limit=LIMIT)
    decoder.feed_file(data[: -sum(map(len, transaction[4:])) - 100])
    assert decoder.pending
    start = 4 + len(wire.head()) + sum(map(len, transaction[:3]))
    with pytest.raises(CorruptEvent, match=f"some ends inside the event at {start};"):
        decoder.finish()
    cut = wire.event(TRANSACTION_PAYLOAD, b"\x02\x03\xfc\xff\x00\0" + b"".join(map(wire.bare, transaction[:4]))[:-100])
    decoder = Decoder(row_limit=LIMIT)
    decoder.feed(wire.packets(wire.head(), cut))
    with pytest.raises(CorruptEvent, match="it ends inside an event"):
        decoder.feed(b"")
    decoder = Decoder(row_limit=LIMIT)
    packet = wire.packets(transaction[3])
    decoder.feed(wire.packets(wire.head(), *transaction[:3]) + (900).to_bytes(3, "little") + packet[3:904])
    with pytest.raises(CorruptEvent, match="an event is cut off"):
        decoder.feed(b"")


def resident() -> int:
    """Return the process's resident memory in MiB, without freed memory that malloc keeps."""
    ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) // 1024


@pytest.mark.parametrize("way", ["packets", "payload"])
def test_a_decoder_releases_the_memory_of_a_large_event(wire, way):
    table = wire.table("fc", "04", extra="02013f")
    size = 30_000_000
    large = wire.event(
        WRITE_ROWS, bytes.fromhex("070000000000 0100 0200 01 ff 00") + size.to_bytes(4, "little") + bytes(size)
    )
    decoder = Decoder()
    before = resident()
    data, _ = streams(wire, [table, large])[way]
    found = [decoder.feed(data[at : at + (1 << 18)]).images for at in range(0, len(data), 1 << 18)]
    del data
    assert sum(found) == 1
    assert resident() - before < 20

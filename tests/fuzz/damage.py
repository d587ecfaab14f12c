"""Makes damaged binlogs from real ones, mostly with corrected checksums, and checks what the decoder returns."""

import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from databus_binlog import BinlogError, Decoder, Events, OversizedRows, Rows, TableMap

FIXTURES = Path(__file__).parents[1] / "fixtures"
HEADER, CHECKSUM, MAGIC = 19, 4, b"\xfebin"
#: types of rows events
ROWS = {*range(23, 26), *range(30, 33), 39, *range(166, 172)}
#: types for which the decoder returns nothing
SKIPPED = {5, 7, 9, 11, 13, 14, 17, 19, 28, 35, 36, 37, 161, 163}
#: TRANSACTION_PAYLOAD contains events, PARTIAL_ROW_DATA a part of one; the decoder returns only the events inside
CONTAINERS = {40, 172}
#: ROWS_QUERY and ANNOTATE_ROWS: the decoder skips them above row_limit
ROWS_QUERIES = {29, 160}


def complete(table: TableMap) -> TableMap:
    """Add the metadata that the file does not contain."""
    return msgspec.structs.replace(
        table,
        columns=tuple(
            msgspec.structs.replace(
                column,
                unsigned=bool(column.unsigned),
                charset=column.charset or "utf8mb4",
                metadata=max(column.metadata, 0),
            )
            for column in table.columns
        ),
    )


def events_of(data: bytes) -> Iterator[bytes]:
    """Split a file into its complete events, by the sizes in their headers."""
    at = len(MAGIC)
    while len(data) - at >= HEADER and (size := int.from_bytes(data[at + 9 : at + 13], "little")) >= HEADER:
        if at + size > len(data):
            return
        yield data[at : at + size]
        at += size


def sealed(event: bytes) -> bytes:
    """Set an event's size and checksum to the right values."""
    sized = event[:9] + (len(event)).to_bytes(4, "little") + event[13:-CHECKSUM]
    return sized + zlib.crc32(sized).to_bytes(CHECKSUM, "little")


def damaged(rng: random.Random, event: bytes) -> bytes:
    """Change an event as a bug or an attacker might; in nine of ten cases its size and checksum are right."""
    changed = bytearray(event)
    at = rng.randrange(HEADER, max(HEADER + 1, len(event) - CHECKSUM)) if len(event) > HEADER else 0
    match rng.randrange(6):
        case 0:
            changed[at] ^= 1 << rng.randrange(8)
        case 1:
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF))
        case 2:
            changed[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\x80", rng.randbytes(4)))
        case 3:
            del changed[at : at + rng.randrange(1, 9)]
        case 4:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
        case 5:
            changed[4] = rng.choice((*ROWS, *SKIPPED, *CONTAINERS, 2, 4, 16, 27, 33, 41, 42, 162, rng.randrange(256)))
    if len(changed) < HEADER + CHECKSUM:
        changed += bytes(HEADER + CHECKSUM)
    return sealed(bytes(changed)) if rng.random() < 0.9 else bytes(changed)


def file(rng: random.Random) -> bytes:
    """Return the start of a real binlog and some of its events, a few of them damaged, left out, repeated or reordered.

    One file in ten is cut off.
    """
    source = rng.choice(sorted(FIXTURES.glob("*-binlog/*.bin")))
    head, *events = events_of(source.read_bytes())
    first = rng.randrange(len(events)) if events else 0
    events = events[first : first + rng.randrange(1, 60)]
    for _ in range(rng.randrange(1, 4)):
        if events:
            at = rng.randrange(len(events))
            events[at : at + 1] = rng.choice(
                ([damaged(rng, events[at])], [events[at]] * 2, [], events[at : at - 3 : -1])
            )
    data = MAGIC + head + b"".join(events)
    return data[: rng.randrange(len(data))] if rng.random() < 0.1 else data


def packets(data: bytes, status: bytes) -> bytes:
    """Return the packets in which a server sends a file's events; these status bytes precede each event."""
    bodies = [status + event for event in events_of(data)]
    return b"".join(len(body).to_bytes(3, "little") + bytes([n & 255]) + body for n, body in enumerate(bodies))


def decode(rng: random.Random, data: bytes) -> None:
    """Decode in pieces, as a file or as packets. The events must be consistent; no error but BinlogError may occur."""
    from_file, semi_sync = rng.random() < 0.7, rng.random() < 0.2
    limit = rng.choice((None, None, 1, rng.randrange(30, 300)))
    decoder = Decoder(describe=complete, file="fuzz", semi_sync=semi_sync, row_limit=limit)
    content = data if from_file else packets(data, b"\0\xef\1" if semi_sync else b"\0")
    feed = decoder.feed_file if from_file else decoder.feed
    size = rng.choice((1, 7, 100, len(content) + 1))
    found: list[Events] = []
    try:
        for at in range(0, len(content), size):
            found.append(feed(content[at : at + size]))
        while decoder.more:
            found.append(feed(b""))
        feed(b"")
    except BinlogError:
        assert decoder.failure is not None
        return
    finally:
        rows = [event for events in found for event in events if isinstance(event, Rows)]
        for event in rows:
            assert len(event.images()) == event.count
        for events in found:
            used = {event.table for event in events if isinstance(event, Rows | OversizedRows)}
            assert used == events.tables.keys()
    if from_file:
        assert_no_event_lost(data, found, decoder.pending, limit or len(data))


def assert_no_event_lost(data: bytes, found: list[Events], pending: bool, limit: int) -> None:
    """Assert that the decoder returned one event for each event of the file, except for those that it skips.

    If an event of the file contains others, their number is not known, and only `pending` is checked.
    """
    events = list(events_of(data))
    assert pending == (len(data) not in {0, len(MAGIC) + sum(map(len, events))})
    if CONTAINERS.isdisjoint(event[4] for event in events):
        assert sum(map(len, found)) == sum(not may_be_skipped(event, limit) for event in events)


def may_be_skipped(event: bytes, limit: int) -> bool:
    """Return whether the decoder returns nothing for an event."""
    kind = event[4]
    return (
        kind in SKIPPED
        or (kind in ROWS_QUERIES and len(event) > limit)
        or (kind in ROWS and event[HEADER : HEADER + 6] == b"\xff\xff\xff\0\0\0")  # refers to no table: no rows
        or bool(event[17] & 0x80 and kind > 43 and not 160 <= kind <= 172)  # an unknown type, marked as ignorable
    )

"""Walks through entries: GTIDs are collected as few texts, groups end before a Begin, and no bytes do any harm."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from databus_binlog import Flavor, GtidSet
from databus_core.events import (
    Action,
    Begin,
    Column,
    Commit,
    Event,
    Heartbeat,
    RowsEvent,
    Table,
    decode_events,
    encode_events,
)
from databus_messages.formats.databus import Encoder
from databus_wire.entry_walk import EntryWalk
from databus_wire.errors import MalformedEvents, MalformedRows
from databus_wire.kafka_records import RecordPacker
from databus_wire.rows_writer import Counter, RowsWriter

UUID, OTHER = "896e7882-18fe-11ef-ab88-22222d34d411", "00112233-4455-6677-8899-aabbccddeeff"
TABLE = Table(schema="s", name="t", columns=(Column(name="a", type="int", raw_type="int"),))


def begin(number: int, gtid: str = "") -> Begin:
    return Begin(number, gtid, "log.1", 1, 1, number)


def commit(executed: str = "", end: int = 9) -> Commit:
    return Commit(executed, "log.1", end, None)


def rows(*values: bytes) -> RowsEvent:
    packed = msgspec.Raw(msgspec.msgpack.encode([[value] for value in values]))
    return RowsEvent(TABLE.fingerprint, Action.INSERT, 0, 5, 7, packed)


def writers() -> dict[bytes, tuple[RowsWriter, ...] | None]:
    writer = Encoder().rows_writer(TABLE)
    writer.publish_to(("partition",), (), Counter())
    return {TABLE.fingerprint.encode(): (writer,)}


def published(walk: EntryWalk, batch: RecordPacker | None = None, after: int = 0) -> int:
    return walk.publish(writers(), lambda fingerprint: None, lambda partition: batch, after, 0)


def executed(*transactions: str | tuple[str, str]) -> list[str]:
    """Return what a walk collects. A transaction has its GTID, or its GTID and the GTID set of its Commit."""
    pairs = [(each, each) if isinstance(each, str) else each for each in transactions]
    events = [event for n, (gtid, gtids) in enumerate(pairs, 1) for event in (begin(n, gtid), commit(gtids))]
    walk = EntryWalk(encode_events(events))
    assert published(walk) == len(transactions)
    return walk.take_executed()


@pytest.mark.parametrize(
    ("transactions", "found"),
    [
        ([], []),
        (["", ""], []),
        ([f"{UUID}:1"], [f"{UUID}:1"]),
        ([f"{UUID}:9", f"{UUID}:10", f"{UUID}:11"], [f"{UUID}:9-11"]),
        ([f"{UUID}:1", f"{UUID}:3", f"{UUID}:4"], [f"{UUID}:1", f"{UUID}:3-4"]),
        ([f"{UUID}:2", f"{UUID}:1"], [f"{UUID}:2", f"{UUID}:1"]),
        ([f"{UUID}:1", "", f"{UUID}:2"], [f"{UUID}:1", f"{UUID}:2"]),
        ([f"{UUID}:blue:1", f"{UUID}:blue:2", f"{UUID}:3"], [f"{UUID}:blue:1-2", f"{UUID}:3"]),
        ([f"{UUID}:1", f"{OTHER}:2"], [f"{UUID}:1", f"{OTHER}:2"]),
        (
            [f"{UUID}:1", (f"{UUID}:2", f"{OTHER}:7,{UUID}:2"), f"{UUID}:3"],
            [f"{UUID}:1", f"{OTHER}:7,{UUID}:2", f"{UUID}:3"],
        ),
        ([f"{UUID}:{2**63 - 2}", f"{UUID}:{2**63 - 1}"], [f"{UUID}:{2**63 - 2}-{2**63 - 1}"]),
        (["0-1-5", "0-1-7", "0-1-6"], ["0-1-6"]),
        (["0-1-5", "7-1-1", "0-2-6"], ["0-1-5", "7-1-1", "0-2-6"]),
        ([f"0-1-{10**19 + 4}", f"0-1-{10**19 + 5}"], [f"0-1-{10**19 + 4}", f"0-1-{10**19 + 5}"]),
    ],
)
def test_the_gtids_of_consecutive_transactions_are_collected(
    transactions: Sequence[str | tuple[str, str]], found: list[str]
) -> None:
    assert executed(*transactions) == found
    assert_same_set(transactions, found)


def assert_same_set(transactions: Sequence[str | tuple[str, str]], collected: Sequence[str]) -> None:
    sets = [each if isinstance(each, str) else each[1] for each in transactions]
    flavor: Flavor = "mariadb" if any(each[1:2] == "-" for each in sets) else "mysql"
    one, other = GtidSet.parse(flavor, ""), GtidSet.parse(flavor, "")
    for gtids in sets:
        one.merge(gtids)
    for gtids in collected:
        other.merge(gtids)
    assert str(one) == str(other)


mysql_gtids = st.builds("{}:{}".format, st.sampled_from([UUID, f"{UUID}:blue", OTHER]), st.integers(1, 12))
mariadb_gtids = st.builds("{}-{}-{}".format, st.integers(0, 1), st.integers(1, 2), st.integers(1, 12))


@settings(derandomize=True, deadline=None)
@given(st.one_of(st.lists(mysql_gtids | st.just("")), st.lists(mariadb_gtids | st.just(""))))
def test_the_collected_gtids_are_the_same_set(gtids: list[str]) -> None:
    assert_same_set(gtids, executed(*gtids))


def test_what_was_collected_is_forgotten() -> None:
    walk = EntryWalk(encode_events([begin(1, f"{UUID}:1"), commit(f"{UUID}:1"), begin(3), commit(), begin(2)]))
    assert published(walk) == 1
    assert walk.take_executed() == [f"{UUID}:1"]
    assert walk.take_executed() == []


def test_groups_end_before_the_next_begin() -> None:
    heartbeat = Heartbeat("", "log.1", 9, 1)
    groups: list[list[Event]] = [
        [heartbeat],
        [begin(1), rows(b"1"), commit(), heartbeat],
        [begin(2)],
        [begin(3), commit()],
    ]
    walk = EntryWalk(encode_events([event for group in groups for event in group]))
    found = []
    while not walk.done:
        found.append(decode_events(walk.take_group()))
    assert found == groups
    assert decode_events(walk.take_group()) == []


def test_a_transaction_is_published_as_a_whole_or_not_at_all() -> None:
    """The batch has room for the first transaction, and for one of the two events of the second."""
    batch = RecordPacker(0, 1000, "s")
    events = [begin(1), rows(b"1"), commit(end=11), begin(2), rows(b"2"), rows(b"x" * 900), commit(end=22)]
    walk = EntryWalk(encode_events(events))
    assert published(walk, batch) == 1
    assert batch.record_count() == 1
    assert (walk.transaction, walk.end, walk.file) == (1, 11, "log.1")
    assert decode_events(walk.take_group()) == events[3:]
    assert walk.done


ENTRY = encode_events(
    [
        begin(1, f"{UUID}:1"),
        rows(b"1", b"2"),
        commit(f"{UUID}:1"),
        Heartbeat("", "log.1", 9, 1),
        begin(2),
        rows(b"3"),
        commit(),
    ]
)


def walk_through(payload: bytes) -> None:
    """Walk through an entry as the publisher does."""
    with suppress(MalformedEvents):
        walk, after = EntryWalk(payload), 0
        batch = RecordPacker(0, 2**16, "s")
        while not walk.done:
            with suppress(MalformedRows, UnicodeDecodeError, OverflowError):
                published(walk, batch, after)
                after = walk.transaction
                walk.take_executed()
            walk.take_group()


@pytest.mark.parametrize("size", range(len(ENTRY)))
def test_an_entry_that_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(MalformedEvents):
        walk = EntryWalk(ENTRY[:size])
        while not walk.done:
            walk.take_group()
    walk_through(ENTRY[:size])


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(ENTRY) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_an_entry_with_other_bytes_is_read_or_refused(bytes_at: list[tuple[int, int]]) -> None:
    payload = bytearray(ENTRY)
    for place, byte in bytes_at:
        payload[place] = byte
    walk_through(bytes(payload))

"""The bookmark at any change that was delivered."""

import msgspec
import pytest
from aiokafka import TopicPartition

from databus.bookmark import Bookmark, Join, Place, Snapshot
from databus.origin import Origin
from databus.trail import Trail
from databus_binlog import Position
from databus_core.errors import InvalidSettings

BEGIN = Bookmark(pipeline="shop", tables=["shop.*"], offsets={"a": {0: 10, 1: 20}})


def record(transaction: int, partition: int, offset: int) -> Origin:
    return Origin(f"{transaction:016d}-0000000000", topic="a", partition=partition, offset=offset)


def test_a_bookmark_has_what_was_delivered_before_it_in_all_partitions() -> None:
    trail = Trail(BEGIN)
    first, second, third = (trail.deliver(each, 2) for each in (record(1, 0, 10), record(2, 1, 25), record(3, 0, 11)))
    assert second.bookmark(1).offsets == {"a": {0: 11, 1: 26}}
    assert third.bookmark(1).offsets == {"a": {0: 12, 1: 26}}
    assert first.bookmark(1).offsets == {"a": {0: 11, 1: 20}}  # also one that comes late
    half = second.bookmark(0)
    assert half.offsets == {"a": {0: 11, 1: 25}}
    assert half.partial is not None
    assert (half.partial.offset, half.partial.rows) == (25, 1)
    assert second.bookmark(1).partial is None
    assert [mark.bookmark(1).transaction for mark in (first, second, third)] == [1, 2, 3]


def test_a_trail_of_many_records_goes_on_in_new_segments() -> None:
    trail = Trail(BEGIN)
    marks = [trail.deliver(record(number, 0, 10 + number), 1) for number in range(2500)]
    assert [marks[each].bookmark(0).offsets["a"][0] for each in (2499, 1000, 999, 0)] == [2510, 1011, 1010, 11]
    trail.pass_by({TopicPartition("a", 0): 3000, TopicPartition("b", 0): 7}, gone={"c": 5})
    assert trail.bookmark().offsets == {"a": {0: 3000, 1: 20}, "b": {0: 7}}
    assert trail.bookmark().gone == {"c": 5}


def test_rows_of_a_dump_and_then_records() -> None:
    join = Join(Position("", "log.000002", 100), 8)
    begin = Bookmark(pipeline="shop", tables=["shop.*"], offsets=BEGIN.offsets, snapshot=Snapshot("dump-1"), join=join)
    trail = Trail(begin)
    line = trail.deliver(Origin(file="items.0", line=3), 5)
    assert line.bookmark(1).snapshot == Snapshot("dump-1", "items.0", 3, 2)
    assert line.bookmark(4).snapshot == Snapshot("dump-1", "items.0", 4, 0)
    trail.end_snapshot()
    after = trail.deliver(record(8, 0, 11), 1).bookmark(0)
    assert (after.snapshot, after.offsets) == (None, {"a": {0: 12, 1: 20}})


@pytest.mark.parametrize(
    ("transaction", "file", "expected"),
    [(12, "log.000002", True), (13, "log.000001", False), (12, "log.000010", False)],
)
def test_a_dump_has_the_transactions_before_it_was_passed_up_to_its_position(
    transaction: int, file: str, expected: bool
) -> None:
    join = Join(Position("", "log.000002", 100), 12)
    assert join.has(transaction, Position("", file, 100)) is expected
    assert not join.has(12, Position("", "log.000002", 101))


def test_a_late_letter_in_the_middle_of_a_transaction_is_done_before_it() -> None:
    """Records 10 and 12 of partition 0 are a transaction; 11 is a letter, which the program gets first."""
    trail = Trail(BEGIN)
    earlier = trail.deliver(record(6, 1, 20), 1)
    first = trail.deliver(record(7, 0, 10), 2)
    letter = trail.deliver(record(2, 0, 11), 1)
    letter.move_ahead_of([first, first])
    last = trail.deliver(record(7, 0, 12), 1)
    found = {name: mark.bookmark(0) for name, mark in {"earlier": earlier, "letter": letter, "last": last}.items()}
    assert [each.offsets["a"] for each in found.values()] == [{0: 10, 1: 21}, {0: 10, 1: 21}, {0: 13, 1: 21}]
    assert {name: each.ahead for name, each in found.items()} == {
        "earlier": [], "letter": [Place("a", 0, 11)], "last": []
    }  # fmt: skip
    half = first.bookmark(0)
    assert (half.offsets["a"][0], half.ahead) == (10, [Place("a", 0, 11)])

    resumed = Trail(Bookmark.parse(str(found["letter"])))
    assert resumed.deliver(record(7, 0, 10), 1).bookmark(0).ahead == [Place("a", 0, 11)]
    resumed.leave_out(record(2, 0, 11))
    assert resumed.deliver(record(7, 0, 12), 1).bookmark(0) == last.bookmark(0)


def test_a_late_letter_of_which_a_chunked_dump_has_some_changes_is_done_with_the_last_of_the_others() -> None:
    trail = Trail(BEGIN)
    around = trail.deliver(record(7, 0, 10), 1)
    letter = msgspec.structs.replace(record(2, 0, 11), through=3)
    first, last = trail.deliver(letter, 1), trail.deliver(msgspec.structs.replace(letter, before=3, through=0), 1)
    first.move_ahead_of([around])
    last.move_ahead_of([around])
    assert [mark.bookmark(0).ahead for mark in (first, last)] == [[], [Place("a", 0, 11)]]


async def test_the_transaction_around_a_letter_is_not_saved_with_the_letter() -> None:
    store = Kept()
    trail = Trail(BEGIN, store)
    first = trail.deliver(record(7, 0, 10), 1)
    letter = trail.deliver(record(2, 0, 11), 1)
    letter.move_ahead_of([first])
    await letter.save(0)
    trail.end_snapshot()
    await trail.save_idle()
    assert [each.offsets["a"][0] for each in store.bookmarks] == [10]


def test_the_start_of_a_record_is_done_although_a_late_one_of_another_partition_comes() -> None:
    trail = Trail(BEGIN)
    half = trail.deliver(record(5, 0, 10), 3).bookmark(1)
    resumed = Trail(half)
    late = resumed.deliver(record(2, 1, 20), 1).bookmark(0)
    assert (late.partial, late.sequence) == (half.partial, half.sequence)
    assert resumed.deliver(record(5, 0, 10), 3).bookmark(2).partial is None


def test_copies_of_a_statement_in_other_partitions_are_known_after_a_restart() -> None:
    statement = Origin(f"{5:016d}-0000000000", topic="a", partition=0, offset=10, statement="digest")
    assert Trail(BEGIN).deliver(statement, 1).bookmark(0).statements == ["digest"]
    trail = Trail(BEGIN)
    trail.deliver(statement, 1)
    trail.leave_out(Origin(topic="a", partition=1, offset=20))
    after = trail.deliver(record(6, 0, 11), 1).bookmark(0)
    assert (after.offsets, after.statements) == ({"a": {0: 12, 1: 21}}, [])


class Kept:
    """A store in memory."""

    def __init__(self) -> None:
        self.bookmarks: list[Bookmark] = []

    async def save(self, bookmark: Bookmark) -> None:
        self.bookmarks.append(bookmark)

    async def load(self) -> Bookmark | None:
        return self.bookmarks[-1] if self.bookmarks else None


async def test_an_idle_program_that_has_acknowledged_everything_needs_the_dump_no_more() -> None:
    store = Kept()
    trail = Trail(Bookmark(pipeline="shop", tables=["shop.*"], offsets={}, snapshot=Snapshot("dump-1")), store)
    row = trail.deliver(Origin(file="items.0", line=0), 1)
    trail.end_snapshot()
    await trail.save_idle()
    assert not store.bookmarks  # the row is not acknowledged
    await row.save(0)
    trail.end_snapshot()
    await trail.save_idle()
    assert [bookmark.snapshot is None for bookmark in store.bookmarks] == [False, True]


def test_a_bookmark_as_text() -> None:
    bookmark = Bookmark(
        pipeline="shop", tables=["shop.*"], offsets={"a": {0: 1}}, snapshot=Snapshot("dump-1", "items.0", 4, 0)
    )
    assert Bookmark.parse(str(bookmark)) == bookmark
    with pytest.raises(InvalidSettings, match="the saved bookmark cannot be read: "):
        Bookmark.parse("{}")


@pytest.mark.parametrize(
    ("pipeline", "tables", "message"),
    [
        ("crm", ["shop.*"], "the bookmark is one of pipeline shop, not of crm"),
        ("shop", ["shop.*", "crm.*"], r"made for shop\.\*; the earlier rows of crm\.\* would be missing"),
    ],
)
def test_a_bookmark_is_for_the_tables_that_it_was_made_for(pipeline: str, tables: list[str], message: str) -> None:
    assert BEGIN.for_tables("shop", ["shop.*"]) == BEGIN
    with pytest.raises(InvalidSettings, match=message):
        BEGIN.for_tables(pipeline, tables)

"""The transactions that backfills insert: rows, TRUNCATE, and in the same transaction the new state."""

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from databus_binlog.row_batch import RowBatch
from databus_core.events import SnapshotEvent, SnapshotTruncate, StateRecord
from databus_core.metrics.reader import REGISTRY
from databus_core.runtime import Health
from databus_core.table_states import Backfill, BackfillProgress, TableDoubt, TableStates, doubt_key
from databus_reader.backfill.insertions import Insertions
from databus_reader.backfill.states import BackfillStates
from databus_reader.backfill.window import WholeTable
from databus_reader.parking import Parking
from unit.reader.backfilled import NAME, PLACE, TABLE, Stream, batch, chunk, definition, key, settings, states

T = Backfill(id="1", schema="shop", table="t")
U = Backfill(id="2", schema="shop", table="u")
RUNNING = BackfillProgress(state="running", key=("id int",))
DOUBT = TableDoubt(state="parked", reason="rollback", text="ROLLBACK", file="log.000001", offset=4, since_us=1)


class Story:
    """Insertions into a stream, with the states before."""

    def __init__(self, found: TableStates, doubt: TableDoubt | None = None) -> None:
        if doubt:
            found.doubts[NAME] = doubt
        self.kafka = found
        self.states = BackfillStates(found)
        parking = Parking(settings(), None, Health())  # type: ignore[arg-type]
        parking.begin_generation("db1", "server", self.states)
        stream = Stream()
        self.of = Insertions(stream, stream, self.states, parking)  # type: ignore[arg-type]


def marks(events: list[object]) -> list[tuple[bool, bool, bool, bool]]:
    found = [each for each in events if isinstance(each, SnapshotEvent)]
    return [(each.first_of_table, each.last_of_table, each.first, each.last) for each in found]


def counted(state: str) -> float:
    return REGISTRY.get_sample_value("databus_reader_backfills_ended_total", {"state": state}) or 0


def kinds(events: list[object]) -> list[str]:
    return [each if isinstance(each, str) else type(each).__name__ for each in events]


def test_the_rows_of_a_chunk_and_what_is_reached_are_one_transaction() -> None:
    story = Story(states(T, **{T.id: RUNNING}))
    events = story.of.chunk(T, chunk(batch(1, 2), batch(3)), [batch(1, 2), batch(3)])
    assert kinds(events) == ["Begin", "t", "SnapshotEvent", "SnapshotEvent", "StateRecord", "Commit"]
    assert [each.row for each in events if isinstance(each, SnapshotEvent)] == [0, 2]
    reached = story.states.progress(T)
    assert (reached.last_key, reached.rows) == ((b"3",), 3)
    [again] = [each for each in story.of.chunk(T, chunk(batch(4)), [batch(4)]) if isinstance(each, SnapshotEvent)]
    assert again.row == 0


def test_the_first_and_last_rows_of_each_table_and_of_the_snapshot_are_marked() -> None:
    t, u = replace(T, cause="snapshot"), replace(U, cause="snapshot")
    story = Story(states(t, u, **{t.id: RUNNING, u.id: RUNNING}))
    of = story.of
    assert marks(of.chunk(t, chunk(batch(1), batch(2)), [batch(1), batch(2)])) == [
        (True, False, True, False), (False, False, False, False),
    ]  # fmt: skip
    assert marks(of.chunk(u, chunk(batch(1), last=True), [batch(1)])) == [(True, True, False, False)]
    last = marks(of.chunk(t, chunk(batch(3), batch(4), last=True), [batch(3), batch(4)]))
    assert last == [(False, False, False, False), (False, True, False, True)]
    assert {story.states.progress(each).state for each in (t, u)} == {"done"}


def test_an_incremental_backfill_has_no_marks_of_the_snapshot() -> None:
    assert marks(Story(states(T)).of.chunk(T, chunk(batch(1), last=True), [batch(1)])) == [(True, True, False, False)]


@pytest.mark.parametrize(("last_key", "last", "marked"), [
    (None, False, [(True, False, False, False)]),
    ((b"1",), True, [(False, True, False, False)]),
    ((b"1",), False, []),
])  # fmt: skip
def test_a_chunk_whose_rows_have_all_changed_has_only_the_marks(
    last_key: tuple[bytes, ...] | None, last: bool, marked: object
) -> None:
    story = Story(states(T, **{T.id: replace(RUNNING, last_key=last_key)}))
    assert marks(story.of.chunk(T, chunk(batch(2), last=last), [])) == marked
    assert story.states.progress(T).last_key == (b"2",)


def test_an_empty_table_gets_both_marks_and_is_done() -> None:
    story = Story(states(T))
    assert marks(story.of.chunk(T, chunk(last=True), [])) == [(True, True, False, False)]
    assert story.states.progress(T).state == "done"


def test_truncate_is_published_with_the_definition_before_any_row_and_once() -> None:
    story = Story(states(replace(T, clean=True)))
    clean = replace(T, clean=True)
    events = story.of.definition(clean, definition())
    assert kinds(events) == ["Begin", "t", "SnapshotTruncate", "StateRecord", "Commit"]
    assert (story.states.progress(T).state, story.states.progress(T).estimate) == ("running", 10)
    assert kinds(story.of.definition(clean, definition())) == ["Begin", "StateRecord", "Commit"]


def test_a_paused_backfill_resumes_behind_its_last_key_without_another_truncate() -> None:
    clean = replace(T, clean=True)
    story = Story(states(clean, **{T.id: replace(RUNNING, state="paused", last_key=(b"7",), rows=7)}))
    assert "SnapshotTruncate" not in kinds(story.of.definition(clean, definition()))
    resumed = story.states.progress(T)
    assert (resumed.state, resumed.last_key, resumed.rows) == ("running", (b"7",), 7)


def test_another_key_starts_the_backfill_over() -> None:
    story = Story(states(T, **{T.id: replace(RUNNING, last_key=(b"7",))}))
    story.of.definition(T, definition(key(signature=("id bigint",))))
    assert (story.states.progress(T).key, story.states.progress(T).last_key) == (("id bigint",), None)


@pytest.mark.parametrize(("where", "empties"), [("", True), ("id > 5", False)])
def test_a_backfill_that_starts_over_empties_the_table_unless_it_loads_only_some_rows(
    where: str, empties: bool
) -> None:
    some = replace(T, where=where)
    story = Story(states(some, **{T.id: BackfillProgress(state="waiting", starts_over=True)}))
    assert ("SnapshotTruncate" in kinds(story.of.definition(some, definition()))) is empties
    assert (story.states.progress(T).state, story.states.progress(T).has_emptied) == ("running", empties)


def test_a_parked_table_is_emptied_even_if_nobody_asked_and_its_changes_flow_from_there() -> None:
    story = Story(states(T), DOUBT)
    events = story.of.definition(T, definition())
    assert kinds(events) == ["Begin", "t", "SnapshotTruncate", "StateRecord", "StateRecord", "Commit"]
    assert (story.states.doubts[NAME].state, story.states.doubts[NAME].backfill) == ("filling", T.id)
    done = story.of.chunk(T, chunk(batch(1), last=True), [batch(1)])
    assert StateRecord(doubt_key(*NAME), None) in done
    assert not story.states.doubts


def test_one_output_is_emptied_without_an_effect_on_the_doubt() -> None:
    one = replace(T, clean=True, output="lake")
    story = Story(states(one), DOUBT)
    events = story.of.definition(one, definition())
    assert [each.output for each in events if isinstance(each, SnapshotTruncate)] == ["lake"]
    assert story.states.doubts[NAME] == DOUBT


def test_only_the_backfill_that_emptied_a_table_ends_its_doubt() -> None:
    story = Story(states(T), replace(DOUBT, state="filling", backfill="another"))
    story.of.chunk(T, chunk(batch(1), last=True), [batch(1)])
    assert NAME in story.states.doubts


@pytest.mark.parametrize("state", ["cancelled", "failed"])
@pytest.mark.parametrize(
    ("backfill", "progress", "parked"),
    [
        (replace(T, clean=True), replace(RUNNING, has_emptied=True), True),
        (replace(T, clean=True), None, False),
        (T, RUNNING, False),
        (replace(T, clean=True, output="lake"), replace(RUNNING, has_emptied=True), False),
        (replace(T, clean=True, cause="snapshot"), None, True),  # after a reset: changes before it are missing
        (replace(T, cause="snapshot"), None, False),  # of a new pipeline: consumers have nothing
    ],
)
def test_a_table_that_lacks_rows_is_parked_if_its_backfill_does_not_end_well(
    state: str, backfill: Backfill, progress: BackfillProgress | None, parked: bool
) -> None:
    story, before = Story(states(backfill, **({T.id: progress} if progress else {}))), counted(state)
    events = story.of.ended(backfill, state, "why")  # type: ignore[arg-type]
    ended = story.states.progress(backfill)
    assert (ended.state, ended.error, counted(state)) == (state, "why", before + 1)
    assert (NAME in story.states.doubts) is parked
    assert kinds(events) == ["Begin", "StateRecord", *["StateRecord"] * parked, "Commit"]
    if parked:
        doubt = story.states.doubts[NAME]
        assert (doubt.reason, doubt.file, doubt.offset, doubt.backfill) == ("incomplete_backfill", *PLACE, "")


async def whole(*batches: RowBatch, where: str = "") -> list[object]:
    async def read() -> AsyncIterator[RowBatch]:
        for each in batches:
            yield each

    backfill = replace(T, where=where)
    of = Story(states(backfill)).of
    return [each async for part in of.whole(backfill, WholeTable(TABLE, PLACE, read())) for each in part]


async def test_a_table_without_key_is_emptied_and_loaded_in_one_transaction() -> None:
    events = await whole(batch(1, 2), batch(3), batch(4))
    assert kinds(events) == ["Begin", "t", "SnapshotTruncate", *["SnapshotEvent"] * 3, "StateRecord", "StateRecord",
                             "Commit"]  # fmt: skip
    assert [mark[:2] for mark in marks(events)] == [(True, False), (False, False), (False, True)]
    assert [each.row for each in events if isinstance(each, SnapshotEvent)] == [0, 2, 3]


async def test_an_empty_table_without_key_gets_both_marks() -> None:
    assert marks(await whole()) == [(True, True, False, False)]


async def test_some_rows_of_a_table_without_key_do_not_empty_it() -> None:
    assert "SnapshotTruncate" not in kinds(await whole(batch(1), where="id = 1"))

"""Which backfills run, and what the stream gives them and gets from them at its boundaries."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from databus_core.errors import FatalError
from databus_core.events import Action, DatabaseEvent, OversizedRow, QueryEvent, SnapshotEvent, SnapshotTruncate
from databus_core.runtime import Health
from databus_core.table_states import Backfill, BackfillProgress, TableStates, backfill_key, encode
from databus_reader.backfill import backfills as module
from databus_reader.backfill.backfills import Backfills
from databus_reader.backfill.insertions import Insertions
from databus_reader.backfill.loader import Loader
from databus_reader.backfill.reports import Reports
from databus_reader.backfill.states import BackfillStates
from databus_reader.backfill.window import Result, WholeTable, Window
from databus_reader.parking import Parking
from unit.reader.backfilled import (
    BOUNDARY,
    NAME,
    OTHER,
    PLACE,
    TABLE,
    EmptyPipe,
    Stream,
    batch,
    changed,
    chunk,
    definition,
    ids,
    settings,
    states,
    turn,
)

T = Backfill(id="1", schema="shop", table="t")
U = Backfill(id="2", schema="shop", table="u")
V = Backfill(id="3", schema="shop", table="v")
ALTER = QueryEvent(TABLE.fingerprint, Action.ALTER, b"", 4, 14, "")
BEFORE = PLACE[0], PLACE[1] - 1


class IdleLoader(Loader):
    """Reads nothing by itself: the test requests windows and delivers what was read."""

    error: Exception | None = None

    async def run(self) -> None:
        if self.error is not None:
            raise self.error
        await asyncio.Event().wait()

    def window(self, result: Result | None = None, *, start: bool = True) -> Window:
        window = Window()
        self.windows.append(window)
        if start:
            window.open(BOUNDARY)
        if result is not None:
            window.deliver(result, PLACE)
        return window


@pytest.fixture(autouse=True)
def idle_loaders(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    async def captured(_: Parking) -> list[tuple[str, str]]:
        return [NAME]

    monkeypatch.setattr(Parking, "_captured", captured)
    monkeypatch.setattr(module, "Loader", IdleLoader)
    yield
    IdleLoader.error = None


class Story:
    def __init__(
        self, *requested: Backfill, connections: int = 2, kafka: TableStates | None = None, **progress: BackfillProgress
    ) -> None:
        self.kafka = kafka or states(*requested, **progress)
        self.states = BackfillStates(self.kafka)
        chosen = settings(backfill={"connections": connections})
        parking = Parking(chosen, None, Health())  # type: ignore[arg-type]
        stream = Stream()
        of = Insertions(stream, stream, self.states, parking)  # type: ignore[arg-type]
        tables = {each.fingerprint: each for each in (TABLE, OTHER)}
        self.reports = Reports()
        pipe: Any = EmptyPipe()
        self.backfills = Backfills(chosen, pipe, "db1", "uuid", self.states, of, tables, self.reports)
        parking.begin_generation("db1", "server", self.states)
        parking.follow(self.backfills.look)

    async def insert(self, place: tuple[str, int] = PLACE) -> list[list[Any]]:
        return [events async for events in self.backfills.insert(place, BOUNDARY)]

    def loader(self, table: tuple[str, str] = NAME) -> IdleLoader:
        found = self.backfills._loaders[table]
        assert isinstance(found, IdleLoader)
        return found

    @property
    def running(self) -> list[str]:
        return [loader.backfill.id for loader in self.backfills._loaders.values()]

    def state(self, backfill: Backfill = T) -> str:
        return self.states.progress(backfill).state


@asynccontextmanager
async def story_of(*requested: Backfill, **given: Any) -> AsyncIterator[Story]:
    story = Story(*requested, **given)
    async with story.backfills:
        yield story


async def test_backfills_start_in_the_order_of_their_requests_as_connections_are_free() -> None:
    async with story_of(V, U, T) as story:
        assert story.backfills.active
        assert await story.insert() == []
        assert story.running == ["1", "2"]
        story.loader().window(chunk(batch(1), last=True))
        await story.insert()
        assert (story.state(), story.running) == ("done", ["2"])
        assert story.backfills.is_due(PLACE)
        await story.insert()
        assert story.running == ["2", "3"]


async def test_one_table_is_loaded_by_one_backfill_at_a_time() -> None:
    async with story_of(T, replace(T, id="0")) as story:
        await story.insert()
        assert story.running == ["0"]


async def test_a_chunk_is_inserted_at_the_first_boundary_behind_the_end_of_the_log() -> None:
    async with story_of(T) as story:
        await story.insert()
        window = story.loader().window(chunk(batch(1, 2)))
        assert not story.backfills.is_due(BEFORE)
        assert await story.insert(BEFORE) == []
        assert not window.closed.done()
        story.backfills.observe([changed(2)])
        [events] = await story.insert()
        assert window.closed.result()
        assert [ids([each]) for each in events if isinstance(each, SnapshotEvent)] == [[1]]
        assert story.loader().windows == []


async def test_the_windows_close_in_their_order() -> None:
    async with story_of(T) as story:
        await story.insert()
        first, second = story.loader().window(), story.loader().window(chunk(batch(2)))
        assert await story.insert() == []
        first.deliver(chunk(batch(1)), PLACE)
        assert len(await story.insert()) == 2
        assert first.closed.result()
        assert second.closed.result()
        assert story.states.progress(T).last_key == (b"2",)


async def test_windows_open_at_the_boundary_and_not_before() -> None:
    async with story_of(T) as story:
        await story.insert()
        window = story.loader().window(start=False)
        story.backfills.observe([changed(1)])
        assert story.backfills.is_due(BEFORE)
        await story.insert(BEFORE)
        assert window.start.result() == BOUNDARY
        assert window.unchanged(found := chunk(batch(1))) is found.batches


@pytest.mark.parametrize(
    "event",
    [
        ALTER,
        OversizedRow(TABLE.fingerprint, Action.INSERT, 0, 4, 14, 1 << 30),
        DatabaseEvent("shop", Action.DROP, b"", 4, 14, "", (TABLE.fingerprint,)),
    ],
)
async def test_what_no_key_can_be_collected_of_drops_all_chunks(event: Any) -> None:
    async with story_of(T) as story:
        await story.insert()
        first, second = story.loader().window(chunk(batch(1))), story.loader().window()
        story.loader().definition = definition()
        story.backfills.observe([event])
        assert (first.closed.result(), second.closed.result()) == (False, False)
        assert (story.loader().windows, story.loader().definition) == ([], None)
        assert await story.insert() == []


async def test_changes_of_another_table_drop_nothing() -> None:
    async with story_of(T) as story:
        await story.insert()
        window = story.loader().window(chunk(batch(1)))
        story.backfills.observe([replace(ALTER, table=OTHER.fingerprint), replace(changed(1), table=OTHER.fingerprint)])
        [events] = await story.insert()
        assert window.closed.result()
        assert sum(isinstance(each, SnapshotEvent) for each in events) == 1


async def test_too_many_changed_rows_drop_the_chunk_and_the_one_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("databus_reader.backfill.window._MOST_KEYS", 1)
    async with story_of(T) as story:
        await story.insert()
        first, second = story.loader().window(chunk(batch(1))), story.loader().window(chunk(batch(2)))
        story.backfills.observe([changed(8, 9)])
        assert await story.insert() == []
        assert (first.closed.result(), second.closed.result()) == (False, False)


async def test_rows_that_were_collected_by_another_key_drop_the_chunk_and_the_one_behind_it() -> None:
    async with story_of(T) as story:
        await story.insert()
        found = story.loader().window(chunk(batch(1))), story.loader().window(chunk(batch(2)))
        found[0]._changed[("code",)] = {(b"c1",)}
        assert await story.insert() == []
        assert [each.closed.result() for each in found] == [False, False]


@pytest.mark.parametrize(("place", "inserted"), [(PLACE, True), ((PLACE[0], PLACE[1] + 1), False)])
async def test_a_changed_table_without_key_is_inserted_only_where_its_view_is(
    place: tuple[str, int], inserted: bool
) -> None:
    async def rows() -> AsyncIterator[Any]:
        yield batch(1)

    async with story_of(T) as story:
        await story.insert()
        window = story.loader().window(WholeTable(TABLE, PLACE, rows()))
        story.backfills.observe([changed(1)])
        assert bool(await story.insert(place)) is inserted
        assert window.closed.result() is inserted
        assert story.state() == ("done" if inserted else "waiting")


async def test_the_stream_is_held_until_its_loader_has_an_error_or_a_result_or_it_is_released() -> None:
    async with story_of(T) as story:
        await story.insert()
        story.loader().windows.append(window := Window(holds=True))
        await story.insert()
        assert story.backfills.holding == [window]
        window.deliver(FatalError("no such table"), PLACE)
        assert story.backfills.holding == []
        story.loader().windows.append(window := Window(holds=True))
        window.open(BOUNDARY)
        story.backfills.release()
        assert (story.backfills.holding, story.loader().windows) == ([], [])


async def test_a_definition_becomes_that_of_the_loader() -> None:
    async with story_of(T) as story:
        await story.insert()
        found = definition()
        story.loader().window(found)
        await story.insert()
        assert story.loader().definition is found
        assert story.loader().progress.state == story.state() == "running"


async def test_a_table_that_cannot_be_loaded_fails_its_backfill_and_no_other() -> None:
    async with story_of(T, U) as story:
        await story.insert()
        story.loader().window(FatalError("no such table"))
        await story.insert()
        assert (story.state(), story.states.progress(T).error) == ("failed", "no such table")
        assert story.running == ["2"]


async def test_a_loader_that_crashes_ends_the_generation() -> None:
    IdleLoader.error = RuntimeError("a bug")
    async with story_of(T) as story:
        await story.insert()
        await turn()
        assert story.backfills.is_due(BEFORE)
        with pytest.raises(RuntimeError, match="a bug"):
            await story.insert()


def wanted(story: Story, wanted: str) -> None:
    backfill = replace(T, wanted=wanted)
    story.backfills.request(backfill_key(T.id), encode(backfill))


async def test_a_paused_backfill_drops_its_chunks_and_resumes_where_it_was() -> None:
    async with story_of(T) as story:
        await story.insert()
        for result in (definition(), chunk(batch(1))):
            story.loader().window(result)
            await story.insert()
        dropped = story.loader().window(chunk(batch(2)))
        wanted(story, "pause")
        [[_, _, _]] = await story.insert()
        assert (dropped.closed.result(), story.state(), story.running) == (False, "paused", [])
        assert not story.backfills.unfinished
        assert not story.backfills.active
        assert await story.insert() == []
        wanted(story, "run")
        await story.insert()
        assert story.loader().progress.last_key == (b"1",)
        assert story.backfills.unfinished


async def test_a_backfill_that_has_not_begun_can_be_paused() -> None:
    async with story_of(replace(T, wanted="pause")) as story:
        assert await story.insert() == []
        assert (story.state(), story.running) == ("waiting", [])


@pytest.mark.parametrize("clean", [True, False])
async def test_a_cancelled_backfill_drops_its_chunks_and_parks_a_table_that_it_has_emptied(clean: bool) -> None:
    running = BackfillProgress(state="running", has_emptied=clean)
    async with story_of(replace(T, clean=clean), **{T.id: running}) as story:
        await story.insert()
        dropped = story.loader().window(chunk(batch(1)))
        story.backfills.request(backfill_key(T.id), encode(replace(T, clean=clean, wanted="cancel")))
        assert len(await story.insert()) == 1
        assert (dropped.closed.result(), story.state(), story.running) == (False, "cancelled", [])
        assert (NAME in story.states.doubts) is clean
        assert await story.insert() == []


async def test_a_backfill_is_cancelled_with_the_one_that_it_replaces() -> None:
    new = replace(U, replaces=T.id)
    async with story_of(T, new, **{T.id: BackfillProgress(state="failed", error="renamed")}) as story:
        await story.insert()
        assert story.running == [new.id]
        wanted(story, "cancel")
        assert len(await story.insert()) == 1
        assert (story.state(T), story.state(new), story.running) == ("failed", "cancelled", [])


async def test_a_backfill_that_ended_by_a_doubt_stops() -> None:
    async with story_of(T) as story:
        await story.insert()
        dropped = story.loader().window(chunk(batch(1)))
        story.states.end(T, "failed", "the table is in doubt")
        assert await story.insert() == []
        assert (dropped.closed.result(), story.running) == (False, [])


async def test_a_backfill_that_starts_over_reads_from_the_first_row() -> None:
    async with story_of(T) as story:
        await story.insert()
        for result in (definition(), chunk(batch(1))):
            story.loader().window(result)
            await story.insert()
        story.states.start_over(T)
        story.backfills.observe([ALTER])
        story.loader().window(definition())
        [events] = await story.insert()
        assert any(isinstance(each, SnapshotTruncate) for each in events)
        assert story.loader().progress.last_key is None


async def test_a_backfill_begins_at_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    later = replace(T, begin_us=int((time.time() + 0.05) * 1e6))
    async with story_of(later) as story:
        assert await story.insert() == []
        assert story.running == []
        assert not story.backfills.active
        story.backfills.wake.clear()
        await story.backfills.wake.wait()
        await story.insert()
        assert story.running == [T.id]


async def test_a_generation_that_ends_stops_the_loaders() -> None:
    async with story_of(T) as story:
        await story.insert()
        [task] = story.backfills._tasks.values()
    assert task.cancelled()


async def test_a_run_until_idle_waits_for_no_load_that_waits_because_its_table_cannot_be_published() -> None:
    later = replace(T, begin_us=int((time.time() + 60) * 1e6))
    async with story_of(later) as story:
        assert story.backfills.unfinished
        story.reports.add(NAME, "rule_mismatch")
        assert not story.backfills.unfinished
    async with story_of(T) as story:
        story.reports.add(NAME, "rule_mismatch")
        assert story.backfills.unfinished

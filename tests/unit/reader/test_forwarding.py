"""The stream and what is inserted into it: only at boundaries, in order, and also while the source is idle."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import pytest

from databus_binlog import Position
from databus_binlog import events as binlog
from databus_changes.fast_path import Taken
from databus_core.errors import FatalError
from databus_core.metrics import reader as metrics
from databus_core.runtime import Health
from databus_reader import forwarding as module
from databus_reader.backfill.window import Window
from databus_reader.forwarding import Forwarding
from unit.reader.backfilled import BOUNDARY, PLACE, turn

HEADER: dict[str, Any] = {"time": 0, "server_id": 1, "file": "log.000001", "start": 4, "end": 14}


class Decoded(list[Any]):
    """A chunk of decoded events."""

    tables: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it


def event(number: int) -> binlog.Xid:
    return binlog.Xid(**HEADER, xid=number)


class Source:
    """The stream of decoded events, which is idle until a test adds some; `None` ends it."""

    def __init__(self) -> None:
        self.chunks: asyncio.Queue[Decoded | None] = asyncio.Queue()
        self.drained = True

    def add(self, *events: Any) -> None:
        self.chunks.put_nowait(Decoded(events))

    def end(self) -> None:
        self.chunks.put_nowait(None)

    async def __anext__(self) -> Decoded:
        chunk = await self.chunks.get()
        if chunk is None:
            raise StopAsyncIteration
        return chunk


class Parts:
    """Everything around the forwarding; `sent` is what it wrote. Odd events are inside a transaction."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.calls: list[int] = []
        self.wake = asyncio.Event()
        self.active = self.unfinished = False
        self.to_insert: list[str] = []
        self.windows: list[Window] = []
        self.flushed = 0
        self.rows = self.transactions = self.time_us = 0
        self.room = 1000
        self.read_to: list[int] = []
        self.error_at = 0
        self.published: list[Any] = []
        self.own = self.prepared = self.reached = self
        self.place: tuple[str, int] | None = PLACE

    # the translator
    async def translate(self, events: Sequence[Any], tables: object) -> Iterable[Any]:
        self.calls.append(len(events))
        self.translated: list[Any] = []
        for each in events:
            if isinstance(each, binlog.Xid):
                if each.xid == self.error_at:
                    raise FatalError("the reader stops")
                self.place = None if each.xid % 2 else PLACE
            self.translated.append(getattr(each, "xid", "beat"))
        return self.translated

    def rest(self) -> Iterable[Any]:
        return self.translated

    def boundary(self) -> Any:
        assert self.place is not None
        return BOUNDARY

    def take_heartbeat(self) -> None:
        return None

    def open(self) -> tuple[()]:
        return ()

    # the backfills
    def observe(self, events: Iterable[Any]) -> None:
        self.observed = list(events)

    def is_due(self, place: object) -> bool:
        return bool(self.to_insert)

    async def insert(self, place: object, boundary: object) -> AsyncIterator[list[Any]]:
        assert (place, boundary) == (PLACE, BOUNDARY)
        inserted, self.to_insert = self.to_insert, []
        for window in self.windows:
            window.open(BOUNDARY)
        yield inserted

    def release(self) -> None:
        self.windows.clear()

    @property
    def holding(self) -> list[Window]:
        return [window for window in self.windows if window.holds_stream]

    # the entries and the switching
    async def write(self, events: Iterable[Any]) -> None:
        self.sent += events

    async def write_encoded(self, encoded: bytes, events: int) -> None:
        self.sent.append(encoded)

    async def flush(self) -> None:
        self.flushed += 1

    async def wait_until_published(self) -> None:
        self.published = list(self.sent)

    def has_read_to(self, time_us: int) -> None:
        self.read_to.append(time_us)

    async def report(self) -> None:
        return None

    async def follow(self, events: list[Any]) -> list[Any]:
        """As without cascading foreign keys."""
        return events

    async def check(self) -> None:
        return None


async def run(
    story: Callable[[Parts, Source], Any],
    *,
    until_idle: bool = False,
    follow: bool = True,
    log_end: Position | None = None,
    fast_path: Any = None,
) -> Parts:
    parts, source = Parts(), Source()
    of: Any = parts
    forwarding = Forwarding(source, of, fast_path, of, of, of, of, Health(), 0, log_end)  # type: ignore[arg-type]
    task = asyncio.create_task(forwarding.run(until_idle=until_idle, follow=follow))
    await story(parts, source)
    if not (until_idle and follow):
        source.end()
    await task
    return parts


async def test_without_backfills_a_chunk_is_translated_at_once() -> None:
    async def story(parts: Parts, source: Source) -> None:
        source.add(event(1), event(2), event(4))
        await turn()

    parts = await run(story)
    assert (parts.sent, parts.calls) == ([1, 2, 4], [3])


async def test_rows_are_inserted_only_between_two_transactions() -> None:
    async def story(parts: Parts, source: Source) -> None:
        parts.active, parts.to_insert = True, ["chunk"]
        source.add(event(1), event(3), event(4), event(6))
        await turn()

    parts = await run(story)
    assert parts.sent == [1, 3, 4, "chunk", 6]
    assert parts.observed == [6]


class Halves:
    """Takes the first half of each chunk past the translator, one event at a time."""

    def __init__(self) -> None:
        self.tables = Decoded.tables

    def release(self, chunk: Decoded) -> list[Any]:
        return list(chunk)

    def rest(self) -> list[Any]:
        return [event(14)]

    def begin(self, chunk: Decoded) -> None:
        self._rest, self._half = list(chunk), len(chunk) // 2

    @property
    def done(self) -> bool:
        return not self._rest

    def take(self, size: int) -> Taken | None:
        if len(self._rest) <= self._half:
            return None
        taken = self._rest.pop(0)
        return Taken(f"fast {taken.xid}".encode(), 1, 1, 1)

    def group(self) -> list[Any]:
        group, self._rest = self._rest, []
        return group


async def test_the_fast_path_passes_the_translator_except_while_a_backfill_runs_and_at_the_end() -> None:
    async def story(parts: Parts, source: Source) -> None:
        source.add(event(2), event(4), event(6), event(8))
        await turn()
        parts.active = True
        source.add(event(10), event(12))
        await turn()

    before = metrics.ROWS._value.get()
    parts = await run(story, fast_path=Halves())
    assert parts.sent == [b"fast 2", b"fast 4", 6, 8, 10, 12, 14]
    assert metrics.ROWS._value.get() - before == 2


async def test_what_precedes_an_error_is_published_before_it_is_raised() -> None:
    parts, source = Parts(), Source()
    parts.error_at = 4
    of: Any = parts
    forwarding = Forwarding(source, of, None, of, of, of, of, Health(), 0, None)  # type: ignore[arg-type]
    source.add(event(2), event(4))
    with pytest.raises(FatalError):
        await forwarding.run(until_idle=False, follow=True)
    assert (parts.sent, parts.published) == ([2], [2])


async def test_nothing_is_inserted_before_the_place_is_known() -> None:
    async def story(parts: Parts, source: Source) -> None:
        parts.active, parts.to_insert, parts.place = True, ["chunk"], None
        parts.wake.set()
        await turn()
        assert parts.sent == []
        source.add(event(2))
        await turn()

    assert (await run(story)).sent == [2, "chunk"]


async def test_a_chunk_is_inserted_and_flushed_while_the_source_is_idle() -> None:
    async def story(parts: Parts, source: Source) -> None:
        parts.active = True
        source.add(event(2))
        await turn()
        assert parts.sent == [2]
        flushed, parts.to_insert = parts.flushed, ["chunk"]
        parts.wake.set()
        await turn()
        assert (parts.sent, parts.flushed) == ([2, "chunk"], flushed + 1)
        source.add(event(4))  # the events that were waited for are not lost
        await turn()

    assert (await run(story)).sent == [2, "chunk", 4]


async def test_the_stream_waits_while_a_view_is_opened_whose_place_it_must_not_pass() -> None:
    async def story(parts: Parts, source: Source) -> None:
        parts.active, parts.to_insert = True, ["requested"]
        parts.windows = [Window(holds=True)]
        source.add(event(2), event(4))
        await turn()
        assert (parts.sent, parts.flushed) == ([2, "requested"], 1)
        parts.to_insert = ["table"]
        parts.windows.pop().give_up()
        await turn()

    assert (await run(story)).sent == [2, "requested", "table", 4]


async def test_the_stream_does_not_wait_for_ever_for_a_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HOLD_SECONDS", 0.0)

    async def story(parts: Parts, source: Source) -> None:
        parts.active, parts.to_insert = True, ["requested"]
        parts.windows = [Window(holds=True)]
        source.add(event(2), event(4))
        await turn()

    parts = await run(story)
    assert (parts.sent, parts.windows) == ([2, "requested", 4], [])


async def test_a_wake_inside_of_a_transaction_inserts_nothing() -> None:
    async def story(parts: Parts, source: Source) -> None:
        parts.active = True
        source.add(event(1))
        await turn()
        parts.to_insert = ["chunk"]
        parts.wake.set()
        await turn()
        assert parts.sent == [1]

    await run(story)


async def test_a_heartbeat_behind_transactions_that_are_left_out_is_not_the_log_s_end() -> None:
    """MySQL sends it before the first transaction that it sends (`tests/contract/test_binlog_left_out.py`)."""

    async def story(parts: Parts, source: Source) -> None:
        source.add(binlog.Heartbeat(**HEADER))
        await turn()
        source.add(event(2))

    assert (await run(story, until_idle=True, follow=False)).sent == ["beat", 2]


async def test_a_reader_until_idle_waits_for_its_backfills() -> None:
    beat = binlog.Heartbeat(**HEADER)

    async def story(parts: Parts, source: Source) -> None:
        parts.unfinished = True
        source.add(event(2), beat)
        await turn()
        parts.unfinished = False
        source.add(beat)

    assert (await run(story, until_idle=True)).sent == [2, "beat", "beat"]


def heartbeat(end: int = 14) -> binlog.Heartbeat:
    return binlog.Heartbeat(**(HEADER | {"end": end}))


async def test_a_heartbeat_tells_that_everything_was_read_when_it_arrived_not_when_its_turn_came() -> None:
    async def story(parts: Parts, source: Source) -> None:
        await turn()  # it waits
        before = time.time_ns() // 1000
        source.add(heartbeat())
        source.drained = False  # the next one is there already when its turn comes
        await turn()
        [arrived] = parts.read_to
        assert before <= arrived <= time.time_ns() // 1000
        source.add(heartbeat())
        await turn()
        assert parts.read_to == [arrived, arrived]

    await run(story)


async def test_heartbeats_do_not_count_while_the_server_may_leave_out_transactions() -> None:
    async def story(parts: Parts, source: Source) -> None:
        source.add(heartbeat(end=50))
        await turn()
        assert parts.read_to == []
        source.add(heartbeat(end=100))
        await turn()
        assert len(parts.read_to) == 1

    await run(story, log_end=Position("", HEADER["file"], 100))

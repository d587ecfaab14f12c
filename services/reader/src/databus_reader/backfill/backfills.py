"""The backfills of one generation: which of them run, which changes they see, and what they insert into the stream."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Self

from msgspec.structs import replace

from databus_binlog import Position
from databus_changes.place import Place
from databus_changes.snapshot.chunks import Chunk
from databus_changes.tables import TableName
from databus_core.errors import FatalError
from databus_core.events import DatabaseEvent, Event, OversizedRow, QueryEvent, RowsEvent, StateRecord, Table
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.pipe import ReaderEnd
from databus_core.settings import Settings
from databus_core.table_states import Backfill
from databus_reader.backfill.insertions import Insertions
from databus_reader.backfill.limits import Limits
from databus_reader.backfill.loader import Loader
from databus_reader.backfill.reports import Reports
from databus_reader.backfill.states import BackfillStates
from databus_reader.backfill.window import Definition, WholeTable, Window

log = get_logger(__name__)


class Backfills:
    """Runs the requested backfills, and inserts what they load between the transactions of the stream."""

    def __init__(
        self,
        settings: Settings,
        pipe: ReaderEnd,
        host: str,
        server: str,
        states: BackfillStates,
        insertions: Insertions,
        tables: Mapping[str, Table],
        reports: Reports,
    ) -> None:
        """`server` is the identity of the server that is read. `tables` maps the fingerprints in events to tables."""
        self._settings = settings
        self._host = host
        self._server = server
        self._states = states
        self._insertions = insertions
        self._tables = tables
        self._limits = Limits(settings, pipe)
        #: set when there may be something to insert at the next boundary
        self.wake = asyncio.Event()
        self._is_due = False
        self._loaders: dict[TableName, Loader] = {}
        self._tasks: dict[TableName, asyncio.Task[None]] = {}
        self._watching: asyncio.Task[None] | None = None
        #: id of a backfill → the timer for its begin
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._reports = reports
        self.look()

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._limits.watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all backfills; the next generation continues them."""
        for timer in self._timers.values():
            timer.cancel()
        tasks = [task for task in (self._watching, *self._tasks.values()) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def active(self) -> bool:
        """Whether `observe` and `insert` have to be called for what is in the stream now."""
        return bool(self._loaders) or self._is_due

    @property
    def unfinished(self) -> bool:
        """Whether there is a backfill that runs, or will run.

        A load that waits because its table was reported does not count: the one before has failed for the same cause.
        """
        now = time.time_ns() // 1000
        waiting = [each for each in self._states.unfinished() if each.wanted != "pause"]
        return any(self._reports.begin_us(each) <= now or each.name not in self._reports for each in waiting)

    def request(self, key: bytes, value: bytes | None) -> None:
        """Take over a request that a client has written."""
        self._states.request(key, value)
        self.look()

    def look(self) -> None:
        """Look at the next boundary what has been requested or read."""
        self._is_due = True
        self.wake.set()

    # --- what the stream tells ------------------------------------------------------------------------------------

    def observe(self, events: Iterable[Event]) -> None:
        """Tell the backfills which rows and tables have changed."""
        for event in events:
            match event:
                case RowsEvent():
                    self._rows(event, self._tables[event.table])
                case OversizedRow() | QueryEvent():
                    self._altered(self._tables[event.table])
                case DatabaseEvent():
                    for fingerprint in event.dropped:
                        self._altered(self._tables[fingerprint])

    def _rows(self, event: RowsEvent, table: Table) -> None:
        loader = self._loaders.get((table.schema, table.name))
        if loader:
            collected = [window.collect(event, table) for window in loader.windows if window.is_open]
            if not all(collected):
                loader.give_up_windows()

    def _altered(self, table: Table) -> None:
        if loader := self._loaders.get((table.schema, table.name)):
            loader.give_up_windows()

    # --- what is inserted -----------------------------------------------------------------------------------------

    def is_due(self, place: Place) -> bool:
        """Return whether `insert` has to be called at a boundary."""
        windows = (loader.windows for loader in self._loaders.values())
        return self._is_due or any(each and (each[0].may_close(place) or not each[-1].start.done()) for each in windows)

    async def insert(self, place: Place, boundary: Position) -> AsyncIterator[list[Event]]:
        """Yield what is to be inserted at this boundary, in order. Open the windows that are requested.

        `boundary` is its position, as `OwnTransactions.boundary` returns it.
        """
        self._is_due = False
        for task in (*self._tasks.values(), self._watching):
            if task and task.done():
                task.result()  # raises the error with which it ended
        for backfill in self._cancelled():
            yield self._insertions.ended(backfill, "cancelled")
        if records := self._paused():
            yield self._insertions.records(records)
        self._start_waiting()
        for loader in list(self._loaders.values()):
            while loader.windows and loader.windows[0].may_close(place):
                async for events in self._close(loader, loader.windows[0], place):
                    yield events
            for window in loader.windows:
                window.open(boundary)

    async def _close(self, loader: Loader, window: Window, place: Place) -> AsyncIterator[list[Event]]:
        """Insert what was read in a window, and close it; or give it up."""
        backfill, result = loader.backfill, window.result
        if isinstance(result, Definition) and (refusal := self._insertions.refusal(backfill)):
            result = FatalError(refusal)
        if isinstance(result, FatalError):
            self._fail(backfill, result)
            yield self._insertions.ended(backfill, "failed", str(result))
            return
        if isinstance(result, Definition):
            loader.definition = result
            events = self._insertions.definition(backfill, result)
        elif isinstance(result, Chunk):
            batches = window.unchanged(result)
            if batches is None:
                loader.give_up_windows()
                return
            events = self._insertions.chunk(backfill, result, batches)
        elif isinstance(result, WholeTable):
            if not window.is_exact(place):
                loader.give_up_windows()
                return
            loader.windows.remove(window)
            async for events in self._insertions.whole(backfill, result):
                yield events
            self._closed(loader, window)
            return
        loader.windows.remove(window)
        self._closed(loader, window)  # before the events are sent: the loader may give up its other windows meanwhile
        yield events

    def _closed(self, loader: Loader, window: Window) -> None:
        loader.progress = self._states.progress(loader.backfill)
        window.closed.set_result(True)
        if loader.progress.is_final:
            name, rows = loader.backfill.full_name, loader.progress.rows
            log.info(LogEvent.BACKFILL_DONE, f"{name} is loaded", table=name, rows=rows)
            self._stop(loader.backfill)
            self.look()  # there may be another one that waits for a connection

    @property
    def holding(self) -> list[Window]:
        """The windows at whose start the stream has to wait."""
        running = [loader for name, loader in self._loaders.items() if not self._tasks[name].done()]
        return [window for loader in running for window in loader.windows if window.holds_stream]

    def release(self) -> None:
        """Give up the windows that hold the stream, so that it goes on."""
        for loader in self._loaders.values():
            if any(window.holds_stream for window in loader.windows):
                loader.give_up_windows()

    # --- which of them run ----------------------------------------------------------------------------------------

    def _cancelled(self) -> list[Backfill]:
        """Stop the backfills that have ended otherwise, or are to be cancelled. Return the latter."""
        for loader in list(self._loaders.values()):
            if self._states.progress(loader.backfill).is_final:  # the table was parked again
                self._stop(loader.backfill)
        cancelled = [each for each in self._states.unfinished() if self._states.is_cancelled(each)]
        for backfill in cancelled:
            self._stop(backfill)
        return cancelled

    def _paused(self) -> list[StateRecord]:
        """Stop the backfills that are to be paused. Return the records of it."""
        records: list[StateRecord] = []
        for backfill in self._states.unfinished():
            progress = self._states.progress(backfill)
            if backfill.wanted == "pause":
                self._stop(backfill)
            if backfill.wanted == "pause" and progress.state == "running":
                records.append(self._states.change(backfill, replace(progress, state="paused")))
        return records

    def _start_waiting(self) -> None:
        """Start backfills, as many as there are connections for."""
        self._states.show()
        for backfill in self._states.unfinished():
            free = len(self._loaders) < self._settings.backfill.connections
            if backfill.wanted == "run" and free and backfill.name not in self._loaders and self._may_begin(backfill):
                self._start(backfill)

    def _may_begin(self, backfill: Backfill) -> bool:
        """Return whether the time of a backfill has come; if not, look again then."""
        seconds = self._reports.begin_us(backfill) / 1e6 - time.time()
        if seconds > 0 and backfill.id not in self._timers:
            self._timers[backfill.id] = asyncio.get_running_loop().call_later(seconds, self._begin_now, backfill.id)
        return seconds <= 0

    def _begin_now(self, backfill: str) -> None:
        del self._timers[backfill]
        self.look()

    def _start(self, backfill: Backfill) -> None:
        progress = self._states.progress(backfill)
        loader = Loader(self._settings, self._host, self._server, backfill, progress, self._limits, self.look)
        self._loaders[backfill.name] = loader
        task = self._tasks[backfill.name] = asyncio.create_task(loader.run())
        task.add_done_callback(lambda _: self.look())
        text = f"loading {backfill.full_name}"
        log.info(LogEvent.BACKFILL_STARTED, text, table=backfill.full_name, rows=progress.rows)

    def _fail(self, backfill: Backfill, error: FatalError) -> None:
        log.error(LogEvent.BACKFILL_FAILED, f"{backfill.full_name} is not loaded: {error}", table=backfill.full_name)
        self._stop(backfill)

    def _stop(self, backfill: Backfill) -> None:
        loader = self._loaders.get(backfill.name)
        if loader and loader.backfill.id == backfill.id:
            loader.give_up_windows()
            del self._loaders[backfill.name]
            self._tasks.pop(backfill.name).cancel()

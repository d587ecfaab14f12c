"""Loads one table, over connections of its own: reads its definition, then its chunks, each in a window of the stream.

The next chunk is read while the stream has not yet reached the end of the window of the one before it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from databus_binlog import Position
from databus_binlog.session import Session
from databus_changes.catalog import read_table
from databus_changes.place import Place
from databus_changes.snapshot.chunks import Chunk, ChunkReader, whole_table
from databus_changes.snapshot.connection import connect_snapshot
from databus_changes.snapshot.keys import ChunkKey, KeyValues, chunk_key
from databus_changes.snapshot.view import start_current_view, start_view
from databus_core.cancellation import raise_if_cancelled
from databus_core.errors import FatalError, SourceUnavailable
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.settings import Settings
from databus_core.source_connection import connect_source, source_errors
from databus_core.table_states import Backfill, BackfillProgress
from databus_reader.backfill.limits import Limits
from databus_reader.backfill.window import Definition, Result, WholeTable, Window

log = get_logger(__name__)

#: the pauses after an error
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_FACTS = """
SELECT table_rows, data_length, engine, table_type FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s"""
#: engines with read views, in lower case
_WITH_VIEWS = {"innodb", "rocksdb"}
#: after this many windows that were given up one after the other, it is logged
_MANY_GIVEN_UP = 10


class _GivenUpError(Exception):
    """A window was given up: the definition and the next chunk have to be read again."""


class Loader:
    """Loads one table. The stream opens and closes the windows, or gives them up."""

    def __init__(
        self,
        settings: Settings,
        host: str,
        server: str,
        backfill: Backfill,
        progress: BackfillProgress,
        limits: Limits,
        wake: Callable[[], None],
    ) -> None:
        """Prepare to load the table from the server with an identity.

        `wake` is called when a window was requested, or has a result.
        """
        self._settings = settings
        self._host = host
        self._server = server
        self._limits = limits
        self._wake = wake
        self.backfill = backfill
        #: as of the last closed window
        self.progress = progress
        #: as of the last closed window; None: it is to be read, maybe again
        self.definition: Definition | None = None
        #: windows that are requested or open, in order
        self.windows: list[Window] = []
        #: how often windows were given up since the last chunk that was not
        self._given_up = 0
        #: when the last chunk was loaded, or the load began, on the monotonic clock
        self._progressed = time.monotonic()

    def give_up_windows(self) -> None:
        """Give up what is being read: a statement changed the table, or too many rows changed."""
        windows, self.windows = self.windows, []
        self.definition = None
        for window in windows:
            window.give_up()

    async def run(self) -> None:
        """Load the table; the stream ends this when the last window is closed. Connect again after a fault."""
        while True:
            try:
                async with AsyncExitStack() as connections:
                    catalog = await connections.enter_async_context(connect_source(self._settings.source, self._host))
                    rows = await connections.enter_async_context(connect_snapshot(self._settings.source, self._host))
                    self._require_same(catalog, rows)
                    while True:
                        await self._load(catalog, rows)
            except (SourceUnavailable, FatalError) as error:
                text = f"backfill of {self.backfill.full_name} waits: {error}"
                log.warning(LogEvent.BACKFILL_WAITS, text, table=self.backfill.full_name)
            self.give_up_windows()
            await self._pause(_FIRST_PAUSE)

    def _require_same(self, *sessions: Session) -> None:
        """Raise SourceUnavailable unless these are sessions with the server that is read: another has other places."""
        if any(session.server.identity != self._server for session in sessions):
            raise SourceUnavailable(
                f"{self._host} is not the server whose binlog is read: waiting for the reader to notice it"
            )

    async def _load(self, catalog: Session, rows: Session) -> None:
        """Load the table from the last closed window on, until it is complete or a window is given up."""
        try:
            window = await self._in_window(catalog, partial(self._define, rows))
            await self._closed(window)
            definition = self.definition
            if definition is None:
                return
            if definition.key is None:
                view = await self._in_window(catalog, lambda _: self._open_whole(rows, definition), holds=True)
                await self._closed(view)
            else:
                await self._load_chunks(catalog, rows, definition, definition.key)
        except _GivenUpError:
            await self._wait_after_given_up()

    async def _wait_after_given_up(self) -> None:
        self._given_up += 1
        if self._given_up % _MANY_GIVEN_UP == 0:
            text = f"backfill of {self.backfill.full_name}: {self._given_up} chunks were given up, because of DDL or of"
            log.warning(LogEvent.BACKFILL_WAITS, f"{text} too many changes", table=self.backfill.full_name)
        if self._given_up > 1:
            await self._pause()

    async def _pause(self, least: float = 0.0) -> None:
        """Pause as long as nothing could be loaded, so longer each time: an attempt may hold up the stream."""
        in_vain = time.monotonic() - self._progressed
        await asyncio.sleep(min(max(least, in_vain), _LONGEST_PAUSE))

    async def _load_chunks(self, catalog: Session, rows: Session, definition: Definition, key: ChunkKey) -> None:
        reader = ChunkReader(definition.table, key, self.backfill.where, definition.row_bytes)
        after, previous = self.progress.last_key, None
        while True:
            await self._limits.wait()
            if self.definition is not definition:  # a statement changed the table while no window was open
                raise _GivenUpError
            window = await self._in_window(catalog, partial(self._read_chunk, rows, reader, after))
            if previous:
                await self._closed(previous)
                self._given_up, self._progressed = 0, time.monotonic()
            if not isinstance(chunk := window.result, Chunk) or chunk.is_last:
                await self._closed(window)
                return
            after, previous = chunk.last_key, window

    async def _in_window(
        self, catalog: Session, read: Callable[[Position], Awaitable[Result]], *, holds: bool = False
    ) -> Window:
        """Request a window, read in it, and deliver the result, which may be an error. `holds`: as in `Window`."""
        raise_if_cancelled()  # nobody opens windows of a loader that was stopped
        window = Window(holds=holds)
        self.windows.append(window)
        self._wake()
        boundary = await window.start
        if boundary is None:
            raise _GivenUpError
        result: Result
        try:
            with source_errors(self._host):
                result = await read(boundary)
        except FatalError as error:
            result = error
        if not isinstance(result, WholeTable):
            with source_errors(self._host):
                window.deliver(result, await _log_end(catalog))
        else:
            window.deliver(result, result.place)
        self._wake()
        return window

    async def _closed(self, window: Window) -> None:
        raise_if_cancelled()
        if not await window.closed:
            raise _GivenUpError

    async def _define(self, rows: Session, boundary: Position) -> Definition:
        """Read the table's definition. Raises FatalError if the table cannot be loaded."""
        name = self.backfill.full_name
        await start_view(rows, boundary)  # until then, the server may show a definition from before the boundary
        await rows.query("ROLLBACK")
        table = await read_table(rows, *self.backfill.name)
        if table is None:
            raise FatalError(f"table {name} does not exist, or the account may not read it: grant SELECT")
        [(count, data_bytes, engine, kind)] = await rows.query(_FACTS, self.backfill.name)
        if kind == "SYSTEM VERSIONED":
            raise FatalError(f"table {name} is system-versioned: such a table cannot be loaded; take a dump")
        definition = Definition(table, await chunk_key(rows, table), int(count or 0), int(data_bytes or 0))
        if definition.key is None:
            self._require_readable(definition, str(engine))
        return definition

    def _require_readable(self, definition: Definition, engine: str) -> None:
        """Raise FatalError if a table without a usable key cannot be read from one view, or is too large for that."""
        name, backfill = self.backfill.full_name, self.backfill
        if engine.lower() not in _WITH_VIEWS:
            raise FatalError(
                f"table {name} has no usable key, and its engine {engine} has no read views: add a primary key, or "
                "convert the table to InnoDB"
            )
        if definition.data_bytes > self._settings.backfill.keyless_limit and not backfill.any_size:
            raise FatalError(
                f"table {name} has no usable key and {definition.data_bytes} bytes, more than "
                "backfill.keyless_limit: the stream would wait while it is loaded; to load it nevertheless, run "
                f"`databus backfill start {name}{' --clean' if backfill.clean else ''} --any-size`"
            )

    async def _read_chunk(
        self,
        rows: Session,
        reader: ChunkReader,
        after: KeyValues | None,
        boundary: Position,
    ) -> Chunk:
        await start_view(rows, boundary)
        chunk = await reader.read(rows, after, self._limits.chunk_rows)
        await rows.query("ROLLBACK")
        self._limits.count(chunk.count)
        return chunk

    async def _open_whole(self, rows: Session, definition: Definition) -> WholeTable:
        view = await start_current_view(rows)
        batches = whole_table(rows, definition.table, self.backfill.where)
        return WholeTable(definition.table, (view.file, view.offset), batches)


async def _log_end(catalog: Session) -> Place:
    """Return the end of the server's log."""
    file, offset, *_ = (await catalog.log_status())[0]
    return str(file), int(offset)

"""Keep tables of an SQL database equal to those of the source."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial

from sqlalchemy import Engine

from databus.block import Block
from databus.bookmark import Bookmark, Join
from databus.changes import Changes
from databus.formats.databus import DatabusRows
from databus.replica import Replica
from databus.retries import Retries
from databus.snapshot import dump_of, tables_of
from databus.sql_store import SqlStore
from databus.trail import Trail
from databus_core.errors import DumpRefused, InvalidSettings, PipelineNotStarted, RetryableError, RulesDiffer
from databus_core.events import Action
from databus_core.kafka_progress import read_progress

#: rows that are written in one transaction, about: several transactions of the source
_ROWS = 2000
#: seconds between two bookmarks that are written although no change came
_IDLE_SECONDS = 10.0


async def apply(engine: Engine, changes: Changes, *, schema: str | None = None, name: str = "default") -> None:
    """Write rows and changes to tables of the same names, in another database. It never ends by itself.

    The database is PostgreSQL, SQLite, MySQL or MariaDB.

    The tables are created in the schema `schema`, with their columns and primary keys; tables that are there are
    replaced. How far it is stands in the table `databus_bookmarks`, under `name`, and is written in the transactions
    of the rows, so each change has its effect once. MySQL and MariaDB commit CREATE and DROP TABLE before that; if the
    program dies in between, it does them again, with the same result. A table that is altered is loaded again. Tables
    without a primary key are left out, and logged.

    Raises what `changes` raise, SQLAlchemy's errors, InvalidSettings for another kind of database and for the source's
    own tables, and SchemaMismatch if the database cannot have a value or a table.
    """
    store = SqlStore(engine, name)
    stored = changes.stored_in(store)
    replica = Replica(engine, store, schema)
    saved = await store.load()
    if server := await asyncio.to_thread(replica.server):
        await _retried(partial(_leave_source, replica, server, changes))
    applying = _Applying(stored, replica, store, saved)
    if saved is None:
        await asyncio.to_thread(store.forget_loads)
    else:
        await applying.finish_loads()
    async with aclosing(stored.blocks()) as blocks:
        async for block, trail in blocks:
            await applying.take(block, trail)


class _Applying:
    """Collects the changes of whole transactions, and writes them."""

    def __init__(self, changes: Changes, replica: Replica, store: SqlStore, saved: Bookmark | None) -> None:
        self._changes = changes
        self._replica = replica
        self._store = store
        #: what the database has
        self._saved, self._written_at = saved, time.monotonic()
        self._waiting: list[Block] = []
        #: tables that were loaded again → the changes that their dumps have
        self._joins: dict[str, Join] = {}
        #: tables of which a replayed dead letter came, after later changes: they are loaded again
        self._late: set[str] = set()
        #: highest sequence that was taken
        self._sequence = saved.sequence if saved else ""

    async def take(self, block: Block | None, trail: Trail) -> None:
        """Take the changes of a record, or the end of all transactions."""
        if self._saved is None:
            await self._create_tables(trail.bookmark())
        if block is None or self._is_full(block):
            await self._flush(trail)
        if block is None:
            await self._load_late()
            return
        if not isinstance(block.rows, DatabusRows):
            raise InvalidSettings(f"{block.rows.table.full_name} is not published in format databus, which apply needs")
        is_late = block.origin.sequence < self._sequence and not block.origin.file
        self._sequence = max(self._sequence, block.origin.sequence)
        if is_late and not self._was_loaded(block):
            await self._note_late(block.rows.table.full_name)  # in the middle of another transaction, maybe
        elif block.query is not None and not self._was_loaded(block):
            await self._flush(trail)  # a statement is a transaction of its own
            if await self._is_redefined(block):
                await self._load(block.rows.table.full_name)
        trail.deliver(block.origin, block.size)
        if not is_late and not self._was_loaded(block):
            self._waiting.append(block)

    async def finish_loads(self) -> None:
        """Load tables again whose loads were interrupted."""
        for table, join in (await asyncio.to_thread(self._store.loads)).items():
            if join:
                self._joins[table] = join
            else:
                await self._load(table)

    async def _note_late(self, table: str) -> None:
        if table not in self._late:
            await asyncio.to_thread(self._store.begin_load, table)  # a restart loads it, too
            self._late.add(table)

    async def _load_late(self) -> None:
        for table in sorted(self._late):
            await self._load(table)
        self._late.clear()

    def _is_full(self, block: Block) -> bool:
        """Return whether a transaction of the source has ended, and enough rows are waiting."""
        if not self._waiting or sum(len(each.images) for each in self._waiting) < _ROWS:
            return False
        return not block.origin.sequence or block.origin.transaction != self._waiting[-1].origin.transaction

    def _was_loaded(self, block: Block) -> bool:
        """Return whether the dump with which a table was loaded again has these changes."""
        join, origin = self._joins.get(block.rows.table.full_name), block.origin
        return bool(join and origin.position and not origin.file and join.has(origin.transaction, origin.position))

    async def _is_redefined(self, block: Block) -> bool:
        """Return whether a statement may have changed rows: what an ALTER does to them is not in the binlog."""
        if block.action is Action.CREATE and "if not exists" in " ".join((block.query or "").lower().split()):
            return await asyncio.to_thread(self._replica.has, block.rows.table)
        return block.action is Action.ALTER

    async def _create_tables(self, bookmark: Bookmark) -> None:
        """Create the tables of the dump, also those that have no rows, and note that they are there."""
        if bookmark.snapshot:
            await _retried(partial(self._create_tables_of, bookmark.snapshot.dump))
        await self._write(bookmark)

    async def _create_tables_of(self, dump: str) -> None:
        source = await self._changes.source()
        for table in tables_of(source, await source.api.dump(dump)):
            await asyncio.to_thread(self._replica.create, table)

    async def _load(self, name: str) -> None:
        """Load a table from a new dump; drop it if the source does not have it any more."""
        await _retried(partial(self._load_once, name))

    async def _load_once(self, name: str) -> None:
        await asyncio.to_thread(self._store.begin_load, name)
        self._joins.pop(name, None)
        try:
            async with dump_of(await self._changes.source([name])) as (table, join, rows), aclosing(rows) as lines:
                await asyncio.to_thread(self._replica.create, table)
                async for block in lines:
                    await asyncio.to_thread(self._replica.load, block)
                self._joins[name] = join
        except DumpRefused:  # no table matches
            await asyncio.to_thread(self._replica.drop, name)
        await asyncio.to_thread(self._store.end_load, name, self._joins.get(name))

    async def _flush(self, trail: Trail) -> None:
        """Write what is waiting, and what of the trail is done then; without rows, only now and then."""
        bookmark = trail.bookmark()
        was_loading = self._saved is not None and self._saved.snapshot is not None
        is_late = time.monotonic() > self._written_at + _IDLE_SECONDS
        if self._waiting or is_late or (was_loading and bookmark.snapshot is None):
            await self._write(bookmark)

    async def _write(self, bookmark: Bookmark) -> None:
        await asyncio.to_thread(self._replica.write, self._waiting, bookmark)
        self._saved, self._waiting, self._written_at = bookmark, [], time.monotonic()


async def _leave_source(replica: Replica, server: str, changes: Changes) -> None:
    """Protect the source's own tables if the replica is on its server."""
    settings = (await changes.source()).settings
    progress = await read_progress(settings)
    if progress is None:
        raise PipelineNotStarted(f"pipeline {settings.name} has not begun: start its services")
    if progress.server == server:
        await asyncio.to_thread(replica.leave_source)


async def _retried(work: Callable[[], Awaitable[None]]) -> None:
    """Do work again and again while a service cannot be reached."""
    retries = Retries()
    while True:
        try:
            return await work()
        except RulesDiffer:
            raise
        except RetryableError as error:
            await retries.wait(error)

"""Keep tables of an SQL database equal to those of the source."""

import asyncio
from contextlib import aclosing

from sqlalchemy import Engine

from databus.block import Block
from databus.bookmark import Bookmark, Join
from databus.changes import Changes
from databus.formats.databus import DatabusRows
from databus.replica import Replica
from databus.snapshot import dump_of, tables_of
from databus.sql_store import SqlStore
from databus.trail import Trail
from databus_core.errors import DumpRefused, InvalidSettings
from databus_core.events import Action

#: rows that are written in one transaction, about: several transactions of the source
_ROWS = 2000


async def apply(engine: Engine, changes: Changes, *, schema: str | None = None, name: str = "default") -> None:
    """Write rows and changes to tables of the same names, in this schema of the database. It never ends by itself.

    The tables are created, with their columns and primary keys; tables that are there are replaced. How far it is
    stands in the table `databus_bookmarks`, under `name`, and is written in the transactions of the rows, so each
    change has its effect once. If a statement changes the columns of a table, the table is loaded again. Tables without
    a primary key are left out, and logged.

    Raises what `changes` raise, SQLAlchemy's errors, and SchemaMismatch if the database cannot have a value.
    """
    store = SqlStore(engine, name)
    stored = changes.stored_in(store)
    applying = _Applying(stored, Replica(engine, store, schema), is_new=await store.load() is None)
    await applying.finish_loads(await asyncio.to_thread(store.loading))
    async with aclosing(stored.blocks()) as blocks:
        async for block, trail in blocks:
            await applying.take(block, trail)


class _Applying:
    """Collects the changes of whole transactions, and writes them."""

    def __init__(self, changes: Changes, replica: Replica, *, is_new: bool) -> None:
        self._changes = changes
        self._replica = replica
        #: whether the tables of the first dump are still to be created
        self._is_new = is_new
        self._waiting: list[Block] = []
        self._bookmark: Bookmark | None = None
        #: tables that were loaded again → the changes that their dumps have
        self._joins: dict[str, Join] = {}

    async def take(self, block: Block | None, trail: Trail) -> None:
        """Take the changes of a record, or the end of all transactions."""
        if self._is_new:
            await self._create_tables(trail.bookmark())
        if block is None or self._is_full(block):
            await self._flush()
        if block is None or self._was_loaded(block):
            return
        if not isinstance(block.rows, DatabusRows):
            raise InvalidSettings(f"{block.rows.table.full_name} is not published in format databus, which apply needs")
        if block.action is Action.ALTER:
            await self._flush()
            await self._alter(block)
        self._bookmark = trail.deliver(block.origin, block.size).bookmark(block.size - 1)
        self._waiting.append(block)

    async def finish_loads(self, tables: list[str]) -> None:
        """Load tables again whose loads were interrupted."""
        for each in tables:
            await self._load(each)

    def _is_full(self, block: Block) -> bool:
        """Return whether a transaction of the source has ended, and enough rows are waiting."""
        if not self._waiting or sum(len(each.images) for each in self._waiting) < _ROWS:
            return False
        return not block.origin.sequence or block.origin.transaction != self._waiting[-1].origin.transaction

    def _was_loaded(self, block: Block) -> bool:
        """Return whether the dump with which a table was loaded again has these changes."""
        join, origin = self._joins.get(block.rows.table.full_name), block.origin
        return bool(
            join and origin.position and join.has(origin.topic, origin.partition, origin.offset, origin.position)
        )

    async def _create_tables(self, bookmark: Bookmark) -> None:
        """Create the tables of the dump, also those that have no rows."""
        self._is_new = False
        if bookmark.snapshot:
            source = await self._changes.source()
            for table in tables_of(source, await source.api.dump(bookmark.snapshot.dump)):
                await asyncio.to_thread(self._replica.create, table)

    async def _alter(self, block: Block) -> None:
        """Load a table again whose columns a statement may have changed, or that it has renamed."""
        table, query = block.rows.table, (block.query or "").lower()
        if "rename" in query or not await asyncio.to_thread(self._replica.follows, table):
            await self._load(table.full_name)

    async def _load(self, name: str) -> None:
        """Load a table from a new dump; drop it if the source does not have it any more."""
        await asyncio.to_thread(self._replica.begin_load, name)
        try:
            async with dump_of(await self._changes.source([name])) as (table, join, rows), aclosing(rows) as lines:
                await asyncio.to_thread(self._replica.create, table)
                async for block in lines:
                    await asyncio.to_thread(self._replica.load, block)
                self._joins[name] = join
        except DumpRefused:  # no table matches
            await asyncio.to_thread(self._replica.drop, name)
        await asyncio.to_thread(self._replica.end_load, name)

    async def _flush(self) -> None:
        if self._bookmark:
            await asyncio.to_thread(self._replica.write, self._waiting, self._bookmark)
        self._waiting, self._bookmark = [], None

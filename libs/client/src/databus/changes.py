"""The changes that a program iterates over: the rows of a dump, then Kafka from there on, joined without gap."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from databus.block import Block
from databus.bookmark import Bookmark
from databus.change import Change, Transaction, before
from databus.extras import of_extra
from databus.iteration import Iteration
from databus.lease import Lease
from databus.origin import Origin
from databus.records import RecordReader
from databus.retries import Retries
from databus.snapshot import rows_from
from databus.source import Source
from databus.starts import Start, bookmark_at
from databus.stores import Store
from databus.stream import ChangeStream, RoundEnd
from databus.trail import Trail
from databus_core.errors import InvalidSettings, RetryableError, RulesDiffer

if TYPE_CHECKING:
    from databus.arrow import BatchBuilder, ChangeBatch


class Opener(Protocol):
    """Gives what changes are read from."""

    async def source_of(self, tables: Sequence[str]) -> Source:
        """Return the source of the changes of some tables."""

    def forget(self) -> None:
        """Read the settings again before the next iteration."""

    @property
    def iterations(self) -> set[Iteration[Any]]:
        """What is iterated over, and is closed before the connections that it uses."""


class Changes:
    """An asynchronous iterator over changes, in the pipeline's order. It never ends by itself.

    `async with databus.changes(…) as changes` closes at the end of the block what was iterated over.
    """

    def __init__(self, opener: Opener, tables: Sequence[str], start: Start, store: Store | None) -> None:
        """See `Databus.changes`."""
        self._opener = opener
        self._tables = tables
        self._start = start
        self._store = store
        self._iterations: set[Iteration[Any]] = set()

    async def source(self, tables: Sequence[str] | None = None) -> Source:
        """Return what is read; with `tables`, what other tables are read from."""
        return await self._opener.source_of(self._tables if tables is None else tables)

    def stored_in(self, store: Store) -> "Changes":
        """Return the same changes with another store."""
        return Changes(self._opener, self._tables, self._start, store)

    def __aiter__(self) -> AsyncIterator[Change]:
        """Yield one change after the other."""
        return self._changes()

    def transactions(self) -> AsyncIterator[Transaction]:
        """Yield the changes of one transaction of the database at a time; the rows of a dump in parts of about 64 KiB.

        A transaction is in memory as a whole.
        """
        return self._transactions()

    def batches(self, rows: int = 10_000) -> "AsyncIterator[ChangeBatch]":
        """Yield rows as Arrow, about so many at a time: of one table with one definition, in the pipeline's order.

        Needs the extra `arrow`. A batch ends early where a statement comes, another table, or no more changes.
        """
        return self._batches(rows)

    async def close(self) -> None:
        """End what is iterated over, also by other tasks: their loops end, without an error."""
        await asyncio.gather(*(each.close() for each in self._iterations))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _batches(self, rows: int) -> "AsyncGenerator[ChangeBatch]":
        make: type[BatchBuilder] = of_extra("arrow", "arrow").BatchBuilder
        batch: BatchBuilder | None = None
        async with aclosing(self.blocks()) as blocks:
            async for block, trail in blocks:
                if batch and batch.accepts(block, trail, rows):
                    continue
                if batch:
                    yield batch.build()
                batch = make(block, trail) if block else None

    async def _changes(self) -> AsyncGenerator[Change]:
        async with aclosing(self.blocks()) as blocks:
            async for block, trail in blocks:
                for change in block.changes(trail) if block else ():
                    yield change

    async def _transactions(self) -> AsyncGenerator[Transaction]:
        waiting: list[Change] = []
        async with aclosing(self.blocks()) as blocks:
            async for block, trail in blocks:
                if waiting and block and 0 < block.origin.transaction < waiting[0].transaction:
                    yield before(block.changes(trail), waiting)  # a dead letter that was replayed in between
                    continue
                if waiting and (block is None or block.origin.transaction != waiting[0].transaction):
                    yield Transaction(waiting)
                    waiting = []
                if block:
                    waiting += block.changes(trail)
                if block and not block.origin.sequence:
                    yield Transaction(waiting)
                    waiting = []

    def blocks(self) -> AsyncGenerator[tuple[Block | None, Trail]]:
        """Yield the changes of one record at a time; None means that all transactions are complete.

        Connects again, and continues where it was, while a service cannot be reached.
        """
        return Iteration(self._blocks(), self._iterations, self._opener.iterations).items()

    async def _blocks(self) -> AsyncGenerator[tuple[Block | None, Trail]]:
        trail, retries = None, Retries()
        async with Lease() as lease:
            while True:
                try:
                    source = await self.source()
                    trail = trail or Trail(await self._first_bookmark(source, lease), self._store)
                    async with aclosing(_blocks_after(source, trail, lease)) as blocks:
                        async for block in blocks:
                            retries.succeeded()
                            yield block, trail
                except RulesDiffer:
                    self._opener.forget()
                    raise
                except RetryableError as error:
                    await retries.wait(error)

    async def _first_bookmark(self, source: Source, lease: Lease) -> Bookmark:
        """Return where to begin: where the store is, or else where `start` says."""
        saved = await self._store.load() if self._store else None
        if saved is None:
            if self._start == "saved":
                raise InvalidSettings("the store has no bookmark: begin with start='snapshot' or another start")
            return await bookmark_at(source, self._start, lease)
        return saved.for_tables(source.settings.name, self._tables)


async def _blocks_after(source: Source, trail: Trail, lease: Lease) -> AsyncGenerator[Block | None]:
    """Yield what comes after the trail. The lease is that of the dump, from its choice to its last row."""
    if snapshot := trail.bookmark().snapshot:
        await lease.take(source, snapshot.dump)
        async with aclosing(await rows_from(source, snapshot)) as lines:
            yield None
            async for block in lines:
                yield block
        await lease.release()
        trail.end_snapshot()
        yield None
    bookmark = trail.bookmark()
    reader = RecordReader(source, bookmark)
    stream = ChangeStream(source.settings, source.topics, bookmark)
    async with aclosing(stream.records()) as records:
        async for item in records:
            if isinstance(item, RoundEnd):
                trail.pass_by(item.offsets, item.gone)
                yield None
                await trail.save_idle()
                continue
            sequence, record = item
            if found := await reader.blocks(sequence, record):
                for block in found:
                    yield block
            else:
                trail.leave_out(Origin(topic=record.topic, partition=record.partition, offset=record.offset))

"""A publisher that runs in this process, and a source that feeds it as a reader does."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from common.waiting import cancelled, eventually
from databus_binlog import Position
from databus_core.events import (
    Action,
    Begin,
    Column,
    Commit,
    Event,
    Row,
    RowsEvent,
    Start,
    Table,
    TableDefinition,
    encode_events,
)
from databus_core.pipe import ReaderEnd
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_publisher import service

#: commit time of all transactions, in µs since the epoch
TIME = 1_700_000_000_000_000

ITEMS = Table(
    schema="shop",
    name="items",
    columns=(Column(name="id", type="int", raw_type="int"), Column(name="text", type="text", raw_type="text")),
    primary_key=(0,),
)


class Source:
    """Simulates a reader and its database: each rows event and each commit moves the position by 100 bytes."""

    def __init__(self, pipe: ReaderEnd) -> None:
        self._pipe = pipe
        self._transaction = 0
        self._offset = 4

    async def claim(self, *, start: bool = True) -> None:
        """Claim the next generation (see `databus_core.pipe`); with `start`, append `Start` and ITEMS' definition."""
        progress = await eventually(self._pipe.claim, seconds=30)
        assert progress
        position = progress.position or Position("", "log.1", self._offset)
        self._transaction = progress.transaction
        if start:
            await self.append(Start(position, "server", "mysql", 1, in_order=True), TableDefinition(ITEMS))

    async def commit(self, *events: Event) -> None:
        """Append a complete transaction."""
        await self.begin(*events)
        await self.append(Commit("", "log.1", self._next(), None))

    async def begin(self, *events: Event) -> None:
        """Append the first events of a transaction."""
        self._transaction += 1
        opening = Begin(
            transaction=self._transaction,
            gtid="",
            file="log.1",
            server_id=1,
            thread_id=1,
            time_us=TIME,
        )
        await self.append(opening, *events)

    async def append(self, *events: Event) -> None:
        await self._pipe.append(encode_events(events))

    async def wait_until_published(self) -> None:
        """Wait until the publisher has trimmed everything that was appended."""

        async def empty() -> bool:
            return await self._pipe.backlog() == 0

        await eventually(empty, seconds=30)

    def rows(self, action: Action, *rows: Row, first: int = 0) -> RowsEvent:
        """Build a rows event; `first` is the ordinal of its first row in the transaction."""
        raw = msgspec.Raw(msgspec.msgpack.encode(rows))
        start = self._offset
        return RowsEvent(table=ITEMS.fingerprint, action=action, row=first, start=start, end=self._next(), rows=raw)

    def insert(self, *rows: tuple[int, int], first: int = 0) -> RowsEvent:
        """Build an event that inserts rows, each given as its id and the size of its text."""
        return self.rows(Action.INSERT, *([b"%d" % n, b"x" * size] for n, size in rows), first=first)

    def _next(self) -> int:
        self._offset += 100
        return self._offset


class Publisher:
    """Runs the publisher in this process."""

    def __init__(self, settings: Settings) -> None:
        self._task = asyncio.create_task(service.run(settings, Health()))

    async def stop(self) -> None:
        await cancelled(self._task)

    async def failure(self) -> BaseException | None:
        """Wait until the publisher stops by itself, and return its error."""
        await asyncio.wait({self._task}, timeout=30)
        return self._task.exception()


Run = Callable[..., Awaitable[tuple[Publisher, Source]]]

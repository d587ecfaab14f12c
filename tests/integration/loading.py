"""For tests of backfills through running pipelines: the command, what was reached, and a consumer's copy of a table."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from common.connections import printing
from common.pipelines import Changes
from common.waiting import eventually
from databus_cli.__main__ import main
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from databus_core.table_states import Backfill, BackfillProgress
from devstack import Server
from devstack.pipeline import Pipeline

Row = tuple[bytes | None, ...]


async def command(pipeline: Pipeline, action: str, *arguments: str) -> int:
    """Run `databus backfill`, and return its exit code."""
    return await asyncio.to_thread(main, ["backfill", action, *arguments, "--config", str(pipeline.config)])


async def backfills(pipeline: Pipeline) -> list[tuple[Backfill, BackfillProgress]]:
    """List the backfills, the oldest first, and how far each has come."""
    states, _ = await read_states(load(pipeline.config))
    waiting = BackfillProgress(state="waiting")
    return [(each, states.progress.get(key, waiting)) for key, each in sorted(states.backfills.items())]


async def reached(pipeline: Pipeline, condition: Callable[[BackfillProgress], bool]) -> BackfillProgress:
    """Wait until the newest backfill has come so far."""

    async def progress() -> BackfillProgress | None:
        found = await backfills(pipeline)
        return found[-1][1] if found and condition(found[-1][1]) else None

    return await eventually(progress, seconds=30)


class Copy:
    """A table as a consumer has it that stores the last row for each key.

    `key`: indexes of the key columns.
    """

    def __init__(self, consumer: Changes, key: Sequence[int] = (0,)) -> None:
        self._consumer = consumer
        self._key = key
        self.rows: dict[Row, Row] = {}
        #: all messages, in order
        self.messages: list[dict[str, Any]] = []

    @property
    def inserted(self) -> list[Row]:
        """The rows of all inserts."""
        return [tuple(row) for each in self.messages if each["Action"] == "insert" for row in each["Rows"]]

    async def equals(self, rows: Callable[[], Awaitable[list[Row]]]) -> None:
        """Read until the copy has exactly these rows, and all that was published is read."""
        wanted = sorted(await rows(), key=repr)
        try:
            async with asyncio.timeout(30):
                while await self._read() or sorted(self.rows.values(), key=repr) != wanted:
                    pass
        except TimeoutError as error:
            raise AssertionError(f"the copy is {sorted(self.rows.values(), key=repr)}, not {wanted}") from error

    async def _read(self) -> bool:
        """Read what there is. Return whether there is more."""
        messages, more = await self._consumer.rest()
        for message in messages:
            self.messages.append(message)
            self._apply(message["Action"], [tuple(row) for row in message.get("Rows", [])])
        return more

    def _apply(self, action: str, rows: list[Row]) -> None:
        match action:
            case "truncate":
                self.rows.clear()
            case "delete":
                for row in rows:
                    self.rows.pop(self._key_of(row), None)
            case "insert":
                self.rows |= {self._key_of(row): row for row in rows}
            case "update":
                for before, after in zip(rows[::2], rows[1::2], strict=True):
                    self.rows.pop(self._key_of(before), None)
                    self.rows[self._key_of(after)] = after

    def _key_of(self, row: Row) -> Row:
        return tuple(row[position] for position in self._key)


def rows_of(server: Server, table: str, columns: str = "*") -> Callable[[], Awaitable[list[Row]]]:
    """Return a function that reads a table's rows."""

    async def read() -> list[Row]:
        async with printing(server) as query:
            return [tuple(row) for row in await query(f"SELECT {columns} FROM {table}")]

    return read

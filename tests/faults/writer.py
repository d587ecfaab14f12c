"""Writes a ledger to the server that is the primary at the time, and continues after each loss of a primary.

If the answer to a COMMIT is lost, the complete transaction is repeated. The key of its first row is the transaction's
number, so the repetition fails as a duplicate if the transaction was committed. A repeated ALTER TABLE fails if the
column exists. Thus each transaction and each ALTER TABLE is committed once.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import asyncmy
from asyncmy.errors import MySQLError

from devstack import Server
from faults.ledger import Change, Ledger, statements

#: a writer waits while this many of its transactions have not been seen in Kafka
AHEAD = 300
#: seconds between transactions (the pace of the load), and between attempts to connect
_PAUSE = 0.005
_RECONNECT_PAUSE = 0.1
_DUPLICATE_KEY, _DUPLICATE_COLUMN = 1062, 1060
#: errors of a server that stops, starts, is read-only, or still holds the locks of our last connection
_PASSING = {1053, 1205, 1213, 1290, 1836, 1927, 2003, 2006, 2013, 2014, 2055, 3169, 3032, 1040}


class Writer:
    """One connection that writes one ledger."""

    def __init__(self, ledger: Ledger, schema: str, primary: Callable[[], Server]) -> None:
        self.ledger = ledger
        self._schema = schema
        self._primary = primary
        self._connection: Any = None
        self._go = asyncio.Event()
        self._idle = asyncio.Event()
        self._stopping = False
        self._progress = asyncio.Event()
        #: the last transaction that was begun, and the last that was seen in Kafka
        self.begun = self.seen = 0
        self.changes = self.lost_answers = 0

    async def create(self) -> None:
        """Create the tables."""
        cursor = await self._cursor()
        for book in self.ledger.books:
            await cursor.execute(book.definition)

    async def run(self) -> None:
        """Write until `finish`."""
        self._go.set()
        while not self._stopping:
            if not self._go.is_set():
                await self._disconnect()  # the primary may be another one afterwards
                self._idle.set()
                await self._go.wait()
                self._idle.clear()
            await self._not_too_far_ahead()
            await self._write(self.ledger.draw())
            await asyncio.sleep(_PAUSE)
        await self._disconnect()

    async def pause(self) -> None:
        """Wait until no transaction is open; none begins before `resume`."""
        self._go.clear()
        await self._idle.wait()

    def resume(self) -> None:
        """Continue after `pause`."""
        self._go.set()

    def finish(self) -> None:
        """Let `run` end after at most one more transaction."""
        self._stopping = True
        self._progress.set()

    def saw(self, transaction: int) -> None:
        """Note that a transaction is in Kafka."""
        self.seen = transaction
        self._progress.set()

    async def _not_too_far_ahead(self) -> None:
        while self.begun - self.seen >= AHEAD and not self._stopping:
            self._progress.clear()
            await self._progress.wait()

    async def _write(self, changes: list[Change]) -> None:
        """Commit the changes once."""
        for change in changes:
            change.book.expected.append(change)
        self.begun = changes[0].transaction
        self.changes += len(changes)
        tried = False
        while True:
            try:
                await (self._alter(changes[0]) if changes[0].column else self._commit(changes))
                return
            except (OSError, MySQLError, asyncio.IncompleteReadError, RuntimeError) as error:
                code = error.args[0] if error.args else None
                if tried and code in (_DUPLICATE_KEY, _DUPLICATE_COLUMN):
                    self.lost_answers += 1
                    return
                if isinstance(error, MySQLError) and code not in _PASSING:
                    raise
            tried = True
            await self._disconnect()
            await asyncio.sleep(_RECONNECT_PAUSE)

    async def _commit(self, changes: list[Change]) -> None:
        cursor = await self._cursor()
        await cursor.execute("BEGIN")
        for statement, rows in statements(changes):
            await cursor.executemany(statement, rows)
        await cursor.execute("COMMIT")

    async def _alter(self, change: Change) -> None:
        cursor, number = await self._cursor(), int(change.column[1:])
        place = " FIRST" if number % 2 else ""
        await cursor.execute(
            f"ALTER TABLE {change.book.name} ADD COLUMN {change.column} VARCHAR(9) NOT NULL DEFAULT 'd{number}'{place}"
        )

    async def _cursor(self) -> Any:
        if self._connection is None:
            server = self._primary()
            self._connection = await asyncmy.connect(
                host=server.host, port=server.port, user=server.user, password=server.password, connect_timeout=5
            )
            async with self._connection.cursor() as cursor:
                await cursor.execute(f"USE {self._schema}")
        return self._connection.cursor()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError, MySQLError, RuntimeError):
                connection.close()

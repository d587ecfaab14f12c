"""Writes a ledger to the server that is the primary at the time, and continues after each loss of a primary.

If the answer to a COMMIT is lost, the complete transaction is repeated. The key of its first row is the transaction's
number, so the repetition fails as a duplicate if the transaction was committed. A repeated ALTER TABLE fails if the
column exists. Thus each transaction and each ALTER TABLE is committed once.

Some transactions are XA transactions in two phases. After the XA PREPARE the writer may wait, even while the primary
is restarted or replaced, and decide the transaction in another session. After a lost answer it commits the transaction
if the server still lists it as prepared, and repeats it otherwise. One that is rolled back is repeated, too.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import asyncmy
from asyncmy.errors import MySQLError

from devstack import Server
from faults.ledger import Change, Ledger, statements

#: seconds between attempts to connect
_RECONNECT_PAUSE = 0.1
_DUPLICATE_KEY, _DUPLICATE_COLUMN = 1062, 1060
#: of the transactions in two phases: those that are rolled back, those that stay prepared for a while
_ROLLED_BACK, _LATER = 0.3, 0.2
#: of those that stay prepared: those that another session decides even if nothing happens meanwhile
_ELSEWHERE = 0.5
#: the longest time for which a transaction stays prepared, in seconds, unless the writer is paused meanwhile
_PREPARED_SECONDS = 2
#: errors of a server that stops, starts, is read-only, or still holds the locks of our last connection
_PASSING = {1053, 1205, 1213, 1290, 1836, 1927, 2003, 2006, 2013, 2014, 2055, 3169, 3032, 1040}
#: an XA transaction that was decided since, or whose session still exists; one that cannot be decided now (MySQL)
_PASSING |= {1397, 1399, 3197}


def prepared(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """Return the transactions that XA RECOVER lists, as XA COMMIT names them. MariaDB sends bytes, MySQL a text."""
    return [f"'{data.decode() if isinstance(data, bytes) else data}'" for *_, data in rows]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The load of one writer."""

    #: seconds between transactions
    pause: float = 0.005
    #: a writer waits while this many of its transactions have not been seen in Kafka
    ahead: float = 300
    #: share of the transactions that are made in two phases
    two_phases: float = 0.05


_FAST = Pace()


class Writer:
    """One connection that writes one ledger."""

    def __init__(
        self, ledger: Ledger, schema: str, primary: Callable[[], Server], random: Random, pace: Pace = _FAST
    ) -> None:
        self.ledger = ledger
        self._pace = pace
        self._random = random
        self._schema = schema
        self._primary = primary
        self._connection: Any = None
        self._go = asyncio.Event()
        self._idle = asyncio.Event()
        self._stopping = False
        self._progress = asyncio.Event()
        #: the last transaction that was begun, and the last that was seen in Kafka
        self.begun = self.seen = 0
        #: commits whose answer was lost, and prepared transactions that another session has decided
        self.lost_answers = self.decided_elsewhere = 0
        self.changes = 0
        #: transactions that were tried in two phases
        self.two_phases: set[int] = set()
        #: set while no transaction is prepared
        self.decided = asyncio.Event()
        self.decided.set()

    async def create(self) -> None:
        """Create the tables."""
        cursor = await self._cursor()
        for book in self.ledger.books:
            await cursor.execute(book.definition)

    async def run(self) -> None:
        """Write until `finish`."""
        self._go.set()
        try:
            while not self._stopping:
                await self._rest()
                await self._not_too_far_ahead()
                await self._write(self.ledger.draw())
                await asyncio.sleep(self._pace.pause)
        finally:
            await self._disconnect()

    async def pause(self) -> None:
        """Wait until no transaction is open, except a prepared one; none begins or is decided before `resume`."""
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

    async def _rest(self) -> None:
        """If the writer is paused, wait for `resume`."""
        if not self._go.is_set():
            await self._disconnect()  # the primary may be another one afterwards
            self._idle.set()
            await self._go.wait()
            self._idle.clear()

    async def _not_too_far_ahead(self) -> None:
        while self.begun - self.seen >= self._pace.ahead and not self._stopping:
            self._progress.clear()
            await self._progress.wait()

    async def _write(self, changes: list[Change]) -> None:
        """Commit the changes once."""
        for change in changes:
            change.book.expected.append(change)
        self.begun = changes[0].transaction
        self.changes += len(changes)
        tried, in_two_phases = False, not changes[0].column and self._random.random() < self._pace.two_phases
        while True:
            try:
                if changes[0].column:
                    await self._alter(changes[0])
                elif not in_two_phases:
                    await self._commit(changes)
                elif not tried:
                    await self._commit_in_two_phases(changes)
                elif not await self._commit_prepared(changes):
                    await self._commit(changes)
                self.decided.set()
                return
            except (OSError, MySQLError, asyncio.IncompleteReadError, RuntimeError) as error:
                code = error.args[0] if error.args else None
                if tried and code in (_DUPLICATE_KEY, _DUPLICATE_COLUMN):
                    self.lost_answers += 1
                    self.decided.set()
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

    async def _commit_in_two_phases(self, changes: list[Change]) -> None:
        cursor, xid = await self._cursor(), self._xid(changes)
        self.two_phases.add(changes[0].transaction)
        self.decided.clear()
        await cursor.execute(f"XA START {xid}")
        for statement, rows in statements(changes):
            await cursor.executemany(statement, rows)
        await cursor.execute(f"XA END {xid}")
        await cursor.execute(f"XA PREPARE {xid}")
        if self._random.random() < _LATER:
            if self._random.random() < _ELSEWHERE:
                await self._disconnect()
            await asyncio.sleep(self._random.uniform(0, _PREPARED_SECONDS))
            await self._rest()
        in_another_session = self._connection is None
        cursor = await self._cursor()
        if self._random.random() < _ROLLED_BACK:
            await cursor.execute(f"XA ROLLBACK {xid}")
            await self._commit(changes)
        else:
            await cursor.execute(f"XA COMMIT {xid}")
        self.decided_elsewhere += in_another_session

    async def _commit_prepared(self, changes: list[Change]) -> bool:
        """Commit the transaction if it is prepared. Return whether it was."""
        cursor, xid = await self._cursor(), self._xid(changes)
        await cursor.execute("XA RECOVER")
        if xid not in prepared(await cursor.fetchall()):
            return False
        await cursor.execute(f"XA COMMIT {xid}")
        self.decided_elsewhere += 1
        return True

    def _xid(self, changes: list[Change]) -> str:
        return f"'{self._schema}.{self.ledger.number}.{changes[0].transaction}'"

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
                host=server.host,
                port=server.port,
                user=server.user,
                password=server.password,
                connect_timeout=5,
                autocommit=True,  # otherwise MariaDB refuses to decide a transaction of another session
            )
            async with self._connection.cursor() as cursor:
                await cursor.execute(f"USE {self._schema}")
                # a repeated transaction may have to wait for one that was being prepared when its connection was lost
                await cursor.execute("SET SESSION innodb_lock_wait_timeout = 2")
        return self._connection.cursor()

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError, MySQLError, RuntimeError):
                connection.close()

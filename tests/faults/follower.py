"""A program with the client that is killed again and again, and continues with the bookmark that it saved last."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random

from databus import Bookmark, Change, Databus, Transaction
from databus_core.settings import Settings
from devstack import Server
from devstack.replication import run
from faults.copies import Violation
from faults.ledger import Book, Row

#: a life lasts so long, in seconds, at random
_SHORTEST, _LONGEST = 0.5, 10.0
_PATIENCE_SECONDS = 60


class Follower:
    """Keeps a copy of the ledger's tables. What it did and its bookmark change together, as in a transaction."""

    def __init__(self, settings: Settings, books: Sequence[Book], random: Random) -> None:
        self._settings = settings
        self._books = {book.name: book for book in books}
        self._rows: dict[str, dict[tuple[str, ...], Row]] = {name: {} for name in self._books}
        #: number of the last change of each table, which only grows
        self._numbers = dict.fromkeys(self._books, 0)
        self._bookmark: Bookmark | None = None
        self._random = random
        self.lives = self.transactions = 0

    async def run(self) -> None:
        """Live again and again, until cancelled. Raises Violation if a change is repeated."""
        while True:
            self.lives += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(self._random.uniform(_SHORTEST, _LONGEST)):
                    await self._live()

    async def compare(self, server: Server, schema: str) -> None:
        """Wait until the copy has the rows of the database, which does not change any more. Raises Violation."""
        for name, book in self._books.items():
            columns = [row[0] for row in await run(server, f"SHOW COLUMNS FROM {schema}.{name}")]
            rows = await run(server, f"SELECT * FROM {schema}.{name}")
            stored = [dict(zip(columns, map(str, row), strict=True)) for row in rows]
            expected = {book.key_of(row): row for row in stored}
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    while self._rows[name] != expected:
                        await self._live(until_idle=True)
            except TimeoutError as error:
                text = f"the client's copy of {name} has {len(self._rows[name])} rows, the database {len(expected)}"
                raise Violation(f"{text}, or others") from error

    async def _live(self, *, until_idle: bool = False) -> None:
        start = self._bookmark or "earliest"
        async with Databus(self._settings) as databus:
            async for transaction in databus.changes(start=start).transactions():
                self._apply(transaction)
                if until_idle:
                    return

    def _apply(self, transaction: Transaction) -> None:
        for change in transaction.changes:
            self._change(change, self._rows[change.definition.name], self._books[change.definition.name])
        self._bookmark = transaction.bookmark()
        self.transactions += 1

    def _change(self, change: Change, rows: dict[tuple[str, ...], Row], book: Book) -> None:
        if change.action == "truncate":
            rows.clear()
        if change.action == "alter":  # each column that is added has its name as default, with another letter
            for row, column in ((row, column.name) for row in rows.values() for column in change.definition.columns):
                row.setdefault(column, f"d{column[1:]}")
        if before := change.before_text:
            rows.pop(book.key_of(_texts(before)), None)
        if after := change.after_text:
            row = _texts(after)
            rows[book.key_of(row)] = row
            if not change.is_snapshot:
                self._require_newer(book, int(row["number"]))

    def _require_newer(self, book: Book, number: int) -> None:
        if number <= self._numbers[book.name]:
            last = self._numbers[book.name]
            raise Violation(f"the client got number {number} of {book.name} after number {last}")
        self._numbers[book.name] = number


def _texts(row: dict[str, str | bytes | None]) -> Row:
    return {name: text.decode() if isinstance(text, bytes) else str(text) for name, text in row.items()}

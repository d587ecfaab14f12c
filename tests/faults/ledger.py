"""A ledger that is written while things break: every change is known, and every new image has a number and a checksum.

Each writer has tables of its own and one connection, so it knows the order of every table's changes:

* `transactions_N`: one row for each transaction, inserted first; its `text` is how many changes the transaction has.
* `accounts_N`: with a primary key; transfers move balance between its rows.
* `entries_N`: without a primary key; a few or some thousands are inserted at once, the oldest are deleted.

`number` counts the new images of a table without a gap. Now and then a column is added to one of the tables.
"""

import hashlib
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

#: a row as texts, by the names of its columns
Row: TypeAlias = dict[str, str]
Statement: TypeAlias = tuple[str, list[tuple[str, ...]]]

ACCOUNTS = 20
_MOST_COLUMNS = 4
_ENTRIES_KEPT = 2000
_WORDS = ("", "ledger", "Zoë", "李雷", "🦊", "back\\slash", "two\nlines", "O'Neil", "x" * 700)
_COMMON = "number BIGINT NOT NULL, tx BIGINT NOT NULL, text VARCHAR(2000) NOT NULL, checksum CHAR(64) NOT NULL"
_TABLES = {
    "transactions": f"CREATE TABLE {{}} ({_COMMON}, PRIMARY KEY (tx))",
    "accounts": f"CREATE TABLE {{}} ({_COMMON}, id INT PRIMARY KEY, balance BIGINT NOT NULL)",
    "entries": f"CREATE TABLE {{}} ({_COMMON}, KEY (number))",
}


@dataclass(frozen=True)
class Change:
    """One change of one row as it must arrive, or a column that a table got."""

    book: "Book"
    transaction: int
    action: str
    #: of an update the images before and after, else one image; none for an added column
    images: tuple[Row, ...] = ()
    column: str = ""


class Book:
    """A table of the ledger: its rows, and its changes that have not been seen yet."""

    def __init__(self, kind: str, writer: int) -> None:
        self.writer = writer
        self.name = f"{kind}_{writer}"
        self.definition = _TABLES[kind].format(self.name)
        self.rows: deque[Row] = deque()
        self.expected: deque[Change] = deque()
        self._number = 0
        self._columns: Row = {}

    def insert(self, transaction: int, **content: str) -> Change:
        """Add a row."""
        row = self._image(transaction, content)
        self.rows.append(row)
        return Change(self, transaction, "insert", (row,))

    def update(self, transaction: int, place: int, **content: str) -> Change:
        """Change a row."""
        before = self.rows[place]
        self.rows[place] = after = self._image(transaction, before | content)
        return Change(self, transaction, "update", (before, after))

    def delete_oldest(self, transaction: int) -> Change:
        """Remove the oldest row."""
        return Change(self, transaction, "delete", (self.rows.popleft(),))

    def add_column(self, transaction: int) -> Change | None:
        """Add a column, which all rows have from then on. Returns None if there are enough already."""
        if len(self._columns) == _MOST_COLUMNS:
            return None
        number = len(self._columns)
        added = {f"x{number}": f"d{number}"}
        self._columns |= added
        self.rows = deque(row | added for row in self.rows)
        return Change(self, transaction, "alter", column=f"x{number}")

    def _image(self, transaction: int, content: Row) -> Row:
        self._number += 1
        row = content | {"number": str(self._number), "tx": str(transaction)} | self._columns
        return row | {"checksum": checksum(self.name, row)}


def checksum(table: str, row: Row) -> str:
    """Return the checksum of a row. It leaves out added columns: old rows get them without a change."""
    content = (table, *(row[name] for name in ("number", "tx", "text", "id", "balance") if name in row))
    return hashlib.sha256("|".join(content).encode()).hexdigest()


class Ledger:
    """The books of one writer, and random transactions for them. The same seed gives the same transactions."""

    def __init__(self, writer: int, seed: int) -> None:
        self._random = random.Random(f"{seed}.{writer}")
        self.number = writer
        self.transactions = Book("transactions", writer)
        self.accounts = Book("accounts", writer)
        self.entries = Book("entries", writer)
        self._drawn = 0

    @property
    def books(self) -> tuple[Book, Book, Book]:
        """All tables."""
        return self.transactions, self.accounts, self.entries

    def draw(self) -> list[Change]:
        """Draw the next transaction: its changes in order, or only an added column."""
        chance, number = self._random.random(), self._drawn
        if number == 0:
            work = [self.accounts.insert(1, id=str(n), balance="1000", text="opened") for n in range(ACCOUNTS)]
        elif chance < 0.005 and (altered := self._random.choice(self.books).add_column(number)):
            return [altered]
        else:
            work = list(self._work(number + 1, chance))
        self._drawn += 1
        return [self.transactions.insert(self._drawn, text=str(len(work) + 1)), *work]

    def _work(self, number: int, chance: float) -> Iterator[Change]:
        rows = self._random.randint(1000, 4000) if chance < 0.006 else self._random.randint(0, 4)
        for _ in range(rows):
            yield self.entries.insert(number, text=self._random.choice(_WORDS))
        for _ in range(self._random.randint(0, 2)):
            yield from self._transfer(number)
        spare = len(self.entries.rows) - _ENTRIES_KEPT
        for _ in range(self._random.randint(0, spare) if spare > 0 and chance > 0.9 else 0):
            yield self.entries.delete_oldest(number)

    def _transfer(self, number: int) -> Iterator[Change]:
        amount = self._random.randint(1, 100)
        for place, moved in zip(self._random.sample(range(ACCOUNTS), 2), (amount, -amount), strict=True):
            balance = int(self.accounts.rows[place]["balance"]) + moved
            yield self.accounts.update(number, place, balance=str(balance), text=self._random.choice(_WORDS))


def statements(changes: list[Change]) -> Iterator[Statement]:
    """Yield SQL with the arguments of each execution. Successive inserts (or deletes) of a table share a statement."""
    for (table, action), group in groupby(changes, lambda change: (change.book.name, change.action)):
        images = [change.images for change in group]
        if action == "insert":
            columns = list(images[0][0])
            marks = ", ".join(["%s"] * len(columns))
            rows = [tuple(row[column] for column in columns) for (row,) in images]
            yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows
        elif action == "delete":
            first, last = images[0][0]["number"], images[-1][0]["number"]
            yield f"DELETE FROM {table} WHERE number BETWEEN %s AND %s", [(first, last)]
        else:
            for _, after in images:
                columns = [column for column in after if column != "id"]
                sets = ", ".join(f"{column} = %s" for column in columns)
                yield f"UPDATE {table} SET {sets} WHERE id = %s", [(*(after[c] for c in columns), after["id"])]

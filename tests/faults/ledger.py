"""A ledger that is written while things break: every change is known, and every new image has a number and a checksum.

Each writer has tables of its own and one connection, so it knows the order of every table's changes:

* `transactions_N`: one row for each transaction, inserted first; its `text` is how many changes the transaction has.
* `accounts_N`: with a primary key; transfers move balance between its rows.
* `entries_N`: without a primary key; a few or some thousands are inserted at once, the oldest are deleted.
* `labels_N`: its key is a text, which updates change, too.
* `parts_N`: its key has two columns; keys of deleted rows are used again.

`number` counts the new images of a table without a gap. Now and then a column is added to one of the tables.
"""

import hashlib
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, product
from typing import TypeAlias

#: a row as texts, by the names of its columns
Row: TypeAlias = dict[str, str]
Statement: TypeAlias = tuple[str, list[tuple[str, ...]]]

ACCOUNTS = 20
_MOST_COLUMNS = 4
_CONTENT = ("number", "tx", "text", "id", "balance", "label", "shelf", "part")
_ENTRIES_KEPT = 2000
_LABELS = 400
_SHELVES, _PARTS = ("a", "A", "Ä", "李", "🦊"), 200
_WORDS = ("", "ledger", "Zoë", "李雷", "🦊", "back\\slash", "two\nlines", "O'Neil", "x" * 700)
_COMMON = "number BIGINT NOT NULL, tx BIGINT NOT NULL, text VARCHAR(2000) NOT NULL, checksum CHAR(64) NOT NULL"
_TABLES = {
    "transactions": f"CREATE TABLE {{}} ({_COMMON}, PRIMARY KEY (tx))",
    "accounts": f"CREATE TABLE {{}} ({_COMMON}, id INT PRIMARY KEY, balance BIGINT NOT NULL)",
    "entries": f"CREATE TABLE {{}} ({_COMMON}, KEY (number))",
    "labels": f"CREATE TABLE {{}} ({_COMMON}, label VARCHAR(40) PRIMARY KEY)",
    "parts": f"CREATE TABLE {{}} ({_COMMON}, shelf CHAR(1) COLLATE utf8mb4_bin, part INT, PRIMARY KEY (shelf, part))",
}
_KEYS = {"transactions": ("tx",), "accounts": ("id",), "entries": (), "labels": ("label",), "parts": ("shelf", "part")}


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
        self.kind = kind
        #: columns of the key; empty: it has none
        self.key = _KEYS[kind]
        self.name = f"{kind}_{writer}"
        self.definition = _TABLES[kind].format(self.name)
        self.rows: deque[Row] = deque()
        self.expected: deque[Change] = deque()
        #: how many changes have been removed from `expected`
        self.seen = 0
        #: while this is not None, changes may be left out, because the table may be parked: up to the one with this
        #: number; infinity: it may still be parked
        self.left_out: float | None = None
        self._number = 0
        self._columns: Row = {}

    def key_of(self, row: Row) -> tuple[str, ...]:
        """Return what identifies a row."""
        return tuple(row[column] for column in self.key or ("number",))

    def next_expected(self) -> Change:
        """Remove and return the next change that is expected."""
        self.seen += 1
        return self.expected.popleft()

    def ends_leaving_out(self) -> None:
        """Note that no change is left out any more of those that are made from now on."""
        self.left_out = self.seen + len(self.expected)

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

    def delete(self, transaction: int, place: int = 0) -> Change:
        """Remove a row, by default the oldest."""
        row = self.rows[place]
        del self.rows[place]
        return Change(self, transaction, "delete", (row,))

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
    content = (table, *(row[name] for name in _CONTENT if name in row))
    return hashlib.sha256("|".join(content).encode()).hexdigest()


class Ledger:
    """The books of one writer, and random transactions for them. The same seed gives the same transactions."""

    def __init__(self, writer: int, seed: int) -> None:
        self._random = random.Random(f"{seed}.{writer}")
        self.number = writer
        self.transactions = Book("transactions", writer)
        self.accounts = Book("accounts", writer)
        self.entries = Book("entries", writer)
        self.labels = Book("labels", writer)
        self.parts = Book("parts", writer)
        self._drawn = self._labels = 0

    @property
    def books(self) -> tuple[Book, ...]:
        """All tables."""
        return self.transactions, self.accounts, self.entries, self.labels, self.parts

    def draw(self) -> list[Change]:
        """Draw the next transaction: its changes in order, or only an added column."""
        chance, number = self._random.random(), self._drawn
        if number == 0:
            work = [self.accounts.insert(1, id=str(n), balance="1000", text="opened") for n in range(ACCOUNTS)]
        elif number == 1:
            work = [self._new_label(2) for _ in range(_LABELS)] + [self._new_part(2) for _ in range(_LABELS)]
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
            yield self.entries.delete(number)
        for book, new in (self.labels, self._new_label), (self.parts, self._new_part):
            for _ in range(self._random.randint(0, 2)):
                yield self._keyed(number, book, new)

    def _transfer(self, number: int) -> Iterator[Change]:
        amount = self._random.randint(1, 100)
        for place, moved in zip(self._random.sample(range(ACCOUNTS), 2), (amount, -amount), strict=True):
            balance = int(self.accounts.rows[place]["balance"]) + moved
            yield self.accounts.update(number, place, balance=str(balance), text=self._random.choice(_WORDS))

    def _keyed(self, number: int, book: Book, new: Callable[[int], Change]) -> Change:
        """Insert a row, or change or delete any row."""
        place, chance = self._random.randrange(len(book.rows)), self._random.random()
        if chance < 0.3 and len(book.rows) > _LABELS:
            return book.delete(number, place)
        if chance < 0.5:
            return new(number)
        key = {"label": self._label()} if book is self.labels and chance < 0.7 else {}
        return book.update(number, place, text=self._random.choice(_WORDS), **key)

    def _new_label(self, number: int) -> Change:
        return self.labels.insert(number, text="label", label=self._label())

    def _label(self) -> str:
        self._labels += 1
        return f"{self._random.choice(_SHELVES)}'{self._labels}"

    def _new_part(self, number: int) -> Change:
        taken = {self.parts.key_of(row) for row in self.parts.rows}
        free = [key for key in product(_SHELVES, map(str, range(_PARTS))) if key not in taken]
        shelf, part = self._random.choice(free)
        return self.parts.insert(number, text="part", shelf=shelf, part=part)


def statements(changes: list[Change]) -> Iterator[Statement]:
    """Yield SQL with the arguments of each execution. Successive inserts (or deletes) of a table share a statement."""
    for (book, action), group in groupby(changes, lambda change: (change.book, change.action)):
        table, images = book.name, [change.images for change in group]
        where = " AND ".join(f"{column} = %s" for column in book.key)
        if action == "insert":
            columns = list(images[0][0])
            marks = ", ".join(["%s"] * len(columns))
            rows = [tuple(row[column] for column in columns) for (row,) in images]
            yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows
        elif action == "delete" and book.key:
            yield f"DELETE FROM {table} WHERE {where}", [book.key_of(row) for (row,) in images]
        elif action == "delete":
            first, last = images[0][0]["number"], images[-1][0]["number"]
            yield f"DELETE FROM {table} WHERE number BETWEEN %s AND %s", [(first, last)]
        else:
            for before, after in images:
                sets = ", ".join(f"{column} = %s" for column in after)
                yield f"UPDATE {table} SET {sets} WHERE {where}", [(*after.values(), *book.key_of(before))]

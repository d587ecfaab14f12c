"""A source for the model of backfills: tables, transactions, and two hosts that may log them in different orders."""

from collections.abc import Sequence
from enum import Enum
from random import Random
from typing import NamedTuple

#: tables with a key; their rows are key → value
KEYED = ("a", "b")
#: table without key; its rows are value → number of rows
KEYLESS = "c"
TABLES = (*KEYED, KEYLESS)
#: keys of a table: 0 to KEYS - 1
KEYS = 6
#: what ALTER TABLE adds to all values of a table
COLUMN = 1000

Rows = dict[int, int]

_KEYS = range(KEYS)
_DDL = ("alter", "truncate", "key change")


class Change(NamedTuple):
    """A change of a row, or DDL on a table."""

    table: str
    #: "row", "alter", "truncate", or "key change": key n becomes KEYS - 1 - n
    kind: str = "row"
    #: keys of the row before and after (for a table without key its values); None for a row that is not there
    before: int | None = None
    after: int | None = None
    value: int = 0
    #: whether the reader cannot know for sure what it changes
    doubt: bool = False


class Fate(Enum):
    COMMITTED = "committed"
    #: ends in ROLLBACK; whether it changed anything is not known
    ROLLED_BACK = "rolled back"
    #: the server crashed while it wrote the transaction; the GTID is used again
    HALF = "half"
    #: a statement that cannot be read: the log does not show which tables it changed
    UNREADABLE = "unreadable"


class Transaction(NamedTuple):
    number: int
    fate: Fate
    #: what the log contains
    logged: tuple[Change, ...]
    #: what it changed in truth
    effect: tuple[Change, ...]
    #: whether the reader stops at it, until a client wants to skip it
    stops: bool = False

    @property
    def bit(self) -> int:
        """The transaction as a set of transactions: bit n is for number n."""
        return 1 << self.number


def apply(rows: Rows, change: Change) -> Rows:
    """Apply a change to the rows of its table; return the rows after it, maybe the same object."""
    if change.kind == "truncate":
        return {}
    if change.kind == "alter":
        if change.table == KEYLESS:
            return {value + COLUMN: count for value, count in rows.items()}
        return {key: value + COLUMN for key, value in rows.items()}
    if change.kind == "key change":
        return {KEYS - 1 - key: value for key, value in rows.items()}
    if change.table == KEYLESS:
        _count(rows, change.before, -1)
        _count(rows, change.after, 1)
        return rows
    if change.before is not None and change.before != change.after:
        rows.pop(change.before, None)
    if change.after is not None:
        rows[change.after] = change.value
    return rows


def _count(rows: Rows, value: int | None, by: int) -> None:
    if value is not None:
        rows[value] = rows.get(value, 0) + by
        if not rows[value]:
            del rows[value]


def no_rows() -> dict[str, Rows]:
    return {table: {} for table in TABLES}


class Host:
    """A server's log, and the part of it that its engine shows to readers already."""

    def __init__(self) -> None:
        self.log: list[Transaction] = []
        #: the transactions in the log, and those of them that are shown
        self.logged = self.visible = 1
        #: number of entries of the log that are shown
        self.shown = 0
        self.rows = no_rows()

    def add(self, transaction: Transaction) -> None:
        self.log.append(transaction)
        if transaction.fate is not Fate.HALF:
            self.logged |= transaction.bit

    def show(self) -> None:
        """Show the next transaction of the log to readers."""
        if self.shown < len(self.log):
            transaction = self.log[self.shown]
            self.shown += 1
            for change in transaction.effect:
                self.rows[change.table] = apply(self.rows[change.table], change)
            if transaction.fate is not Fate.HALF:
                self.visible |= transaction.bit


class Source:
    """Host 0 commits; host 1 is its replica, which may lag, and commits in another order what does not conflict."""

    def __init__(self, random: Random, tables: Sequence[str]) -> None:
        """Prepare a source whose transactions change these tables."""
        self._random, self._tables = random, tables
        #: shares of transactions that are in doubt, of changes that are, and of DDL
        self._doubts, self._doubtful, self._ddl = (random.choice((0, rate)) for rate in (0.1, 0.05, 0.15))
        #: share of the doubts at which the reader stops
        self._stops = random.choice((0, 0, 0.5, 1))
        self.hosts = (Host(), Host())
        #: number → transaction; numbers count from 1
        self.transactions: dict[int, Transaction] = {}
        self._rows = no_rows()
        self._values = 0
        self._altered = dict.fromkeys(TABLES, 0)

    @property
    def all(self) -> int:
        """All transactions."""
        return self.hosts[0].logged

    def commit(self) -> None:
        """Commit a transaction, or log one that leaves a doubt."""
        doubt = self._random.random() < self._doubts
        # The reader starts by GTID, so a second stop at the same GTID would take it back to the first one.
        log = self.hosts[0].log
        stops = self._stops if not log or log[-1].fate is not Fate.HALF else 0
        fates = (Fate.HALF, Fate.ROLLED_BACK, *([Fate.UNREADABLE] if stops else []))
        fate = self._random.choice(fates) if doubt else Fate.COMMITTED
        number = len(self.transactions) + 1
        rows = {table: dict(rows) for table, rows in self._rows.items()}
        changes = tuple(self._draw(rows) for _ in range(self._random.choice((1, 1, 2, 3))))
        effect = changes
        if fate is not Fate.COMMITTED:
            changes = tuple(change for change in changes if change.kind == "row") or changes[:0]
            effect = () if fate is Fate.HALF else changes[: self._random.randint(0, len(changes))]
        if not changes:
            return
        if fate is Fate.UNREADABLE:
            changes = ()
        in_doubt = fate is not Fate.COMMITTED or any(change.doubt for change in changes)
        is_stop = fate is Fate.UNREADABLE or (in_doubt and self._random.random() < stops)
        transaction = Transaction(number, fate, changes, effect, is_stop)
        self.hosts[0].add(transaction)
        if fate is not Fate.HALF:
            self.transactions[number] = transaction
        for change in effect:
            self._rows[change.table] = apply(self._rows[change.table], change)
            self._altered[change.table] += COLUMN * (change.kind == "alter")

    def replicate(self) -> None:
        """Let the replica commit one more transaction."""
        replica = self.hosts[1]
        missing = [n for n in range(1, len(self.transactions) + 1) if not replica.logged >> n & 1][:2]
        if missing:
            first, *others = [self.transactions[number] for number in missing]
            swap = others and self._random.random() < 0.5 and not _conflict(first, others[0])
            replica.add(others[0] if swap else first)

    def catch_up(self) -> None:
        """Let the replica commit everything, and both hosts show everything."""
        while self.hosts[1].logged != self.all:
            self.replicate()
        for host in self.hosts:
            while host.shown < len(host.log):
                host.show()

    def _draw(self, rows: dict[str, Rows]) -> Change:
        """Draw a change, and apply it to these rows."""
        random = self._random
        table = random.choice(self._tables)
        if random.random() < self._ddl:
            change = Change(table, random.choice(("alter", "truncate") if table == KEYLESS else _DDL))
        else:
            self._values += 1
            draw = self._draw_without_key if table == KEYLESS else self._draw_with_key
            change = draw(table, rows[table], self._values + self._altered[table])
            if random.random() < self._doubtful:
                change = change._replace(doubt=True)
        rows[table] = apply(rows[table], change)
        return change

    def _draw_with_key(self, table: str, rows: Rows, value: int) -> Change:
        key, other, lot = self._random.choice(_KEYS), self._random.choice(_KEYS), self._random.random()
        if key not in rows:
            return Change(table, after=key, value=value)
        if lot < 0.3:
            return Change(table, before=key)
        return Change(table, before=key, after=other if lot < 0.6 and other not in rows else key, value=value)

    def _draw_without_key(self, table: str, rows: Rows, value: int) -> Change:
        if not rows or self._random.random() < 0.4:
            return Change(table, after=value)
        old, lot = self._random.choice(list(rows)), self._random.random()
        if lot < 0.3:
            return Change(table, after=old)  # a second row with the same values
        return Change(table, before=old, after=None if lot < 0.6 else value)


def _conflict(one: Transaction, other: Transaction) -> bool:
    """Whether all hosts commit the two in the same order."""
    return any(_touches(mine, yours) for mine in one.logged + one.effect for yours in other.logged + other.effect)


def _touches(mine: Change, yours: Change) -> bool:
    if mine.table != yours.table:
        return False
    if mine.kind != "row" or yours.kind != "row" or mine.table == KEYLESS:
        return True
    return not {mine.before, mine.after, None}.isdisjoint({yours.before, yours.after} - {None})

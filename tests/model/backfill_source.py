"""A source for the model of backfills: two hosts that may log transactions in different orders."""

from collections.abc import Sequence
from random import Random

from model.backfill_changes import (
    COLUMN,
    KEYED,
    KEYLESS,
    KEYS,
    TABLES,
    UNCAPTURED,
    Change,
    Fate,
    Rows,
    Transaction,
    apply_all,
    no_rows,
)

_KEYS = range(KEYS)
_DDL = ("alter", "truncate", "key change")


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
                apply_all(self.rows, change)
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
        #: share of transactions that create, drop or rename tables
        self.names = 0.0
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
        if self._random.random() < self.names or rows.keys().isdisjoint(self._tables):
            changes: tuple[Change, ...] = (self._draw_names(rows),)
        else:
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
            apply_all(self._rows, change)
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
        table = random.choice([table for table in self._tables if table in rows])
        if random.random() < self._ddl:
            change = Change(table, random.choice(("alter", "truncate") if table == KEYLESS else _DDL))
        else:
            self._values += 1
            draw = self._draw_without_key if table == KEYLESS else self._draw_with_key
            change = draw(table, rows[table], self._values + self._altered[table])
            if random.random() < self._doubtful:
                change = change._replace(doubt=True)
        apply_all(rows, change)
        return change

    def _draw_names(self, rows: dict[str, Rows]) -> Change:
        """Draw a statement that creates, drops or renames tables."""
        draw = self._random.choice
        missing = [table for table in self._tables if table not in rows]
        if missing and (len(missing) == len(self._tables) or self._random.random() < 0.7):
            return Change(draw(missing), "create")
        table = draw([table for table in self._tables if table in rows])
        other = next((each for each in self._tables if each in KEYED and each != table), UNCAPTURED)
        if table == KEYLESS or self._random.random() < 0.2:
            return draw((Change(table, "drop"), Change(table, "rename", renames=((table, UNCAPTURED),))))
        renames = [(table, other)]
        if other in rows:
            renames.append((other, draw((table, table, UNCAPTURED))))
        return Change(table, "rename", renames=tuple(renames))

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
    if mine.names.isdisjoint(yours.names):
        return False
    if mine.kind != "row" or yours.kind != "row" or mine.table == KEYLESS:
        return True
    return not {mine.before, mine.after, None}.isdisjoint({yours.before, yours.after} - {None})

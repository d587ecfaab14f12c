"""What happens to the tables of the model of backfills: changes of rows, DDL, and transactions of them."""

from enum import Enum
from typing import NamedTuple

#: tables with a key; their rows are key → value
KEYED = ("a", "b")
#: table without key; its rows are value → number of rows
KEYLESS = "c"
TABLES = (*KEYED, KEYLESS)
#: a name that is not captured: a table that gets it is gone
UNCAPTURED = "x"
#: kinds of changes of names
NAMES = ("create", "drop", "rename")
#: keys of a table: 0 to KEYS - 1
KEYS = 6
#: what ALTER TABLE adds to all values of a table
COLUMN = 1000

Rows = dict[int, int]
#: old and new name of each table that one statement renames, all at once
Renames = tuple[tuple[str, str], ...]


class Change(NamedTuple):
    """A change of a row, or DDL on a table."""

    table: str
    #: "row", "alter", "truncate", "key change" (key n becomes KEYS - 1 - n), "create", "drop" or "rename"
    kind: str = "row"
    #: keys of the row before and after (for a table without key its values); None for a row that is not there
    before: int | None = None
    after: int | None = None
    value: int = 0
    #: whether the reader cannot know for sure what it changes
    doubt: bool = False
    renames: Renames = ()

    @property
    def names(self) -> set[str]:
        """The names that it concerns."""
        return {self.table, *(name for rename in self.renames for name in rename)}


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
    if change.kind in ("truncate", "create"):
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


def apply_all(tables: dict[str, Rows], change: Change) -> None:
    """Apply a change to the tables that exist."""
    if change.kind == "rename":
        moved = {new: tables.pop(old) for old, new in change.renames}
        moved.pop(UNCAPTURED, None)
        tables |= moved
    elif change.kind == "drop":
        del tables[change.table]
    else:
        tables[change.table] = apply(tables.get(change.table, {}), change)


def no_rows() -> dict[str, Rows]:
    return {table: {} for table in TABLES}

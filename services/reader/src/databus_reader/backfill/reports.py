"""The tables that the publisher has reported, until they are loaded, and when their next loads may begin.

Often many tables have the same cause, such as a right that the account lacks. Each load that fails because of it ends a
generation. So after one has failed, the loads of all tables with its reason wait, until one of them succeeds or time
has passed.
"""

from collections.abc import Iterable

from databus_changes.tables import Rename, TableName, moves
from databus_core.table_states import Backfill


class Reports:
    """Knows the reported tables. It is used by one generation after the other."""

    def __init__(self) -> None:
        #: table → reason of the report
        self._reasons: dict[TableName, str] = {}
        #: reason → earliest time of the next load, in µs since the epoch
        self._begins: dict[str, int] = {}

    def __contains__(self, table: TableName) -> bool:
        """Return whether a table is reported."""
        return table in self._reasons

    def add(self, table: TableName, reason: str) -> None:
        """Add a table."""
        self._reasons[table] = reason

    def postpone(self, table: TableName, begin_us: int) -> None:
        """Let tables with the reason of this one wait, because it was reported again."""
        reason = self._reasons[table]
        self._begins[reason] = max(begin_us, self._begins.get(reason, 0))

    def remove(self, table: TableName) -> None:
        """Remove a table, which is loaded or gone. The loads of others with its reason need not wait any more."""
        if reason := self._reasons.pop(table, None):
            self._begins.pop(reason, None)

    def renamed(self, renames: Iterable[Rename]) -> None:
        """Follow the tables that one statement renames."""
        moved = moves(renames)
        reasons = {new: self._reasons[old] for old, new in moved.items() if old in self._reasons}
        for old in moved.keys() - moved.values():  # a doubt stays with a name that another table gets, too
            self._reasons.pop(old, None)
        self._reasons |= reasons

    def begin_us(self, backfill: Backfill) -> int:
        """Return the earliest time of a load, in µs since the epoch. Only loads that nobody has asked for wait."""
        if backfill.cause != "heal" or (reason := self._reasons.get(backfill.name)) is None:
            return backfill.begin_us
        return max(backfill.begin_us, self._begins.get(reason, 0))

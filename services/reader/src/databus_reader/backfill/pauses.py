"""The pauses before a table is loaded again, which double each time if it has to be loaded again and again."""

from databus_changes.place import Place
from databus_changes.tables import TableName

_FIRST_US = 10 * 1_000_000
_LONGEST_US = 3600 * 1_000_000
#: a load within this time after the one before is one more of the same row of loads
_AGAIN_US = 2 * _LONGEST_US


class Pauses:
    """Remembers why tables were loaded again."""

    def __init__(self) -> None:
        #: table → place of each cause within a short time after the one before → when it was reported first
        self._causes: dict[TableName, dict[Place, int]] = {}

    def next_us(self, table: TableName, cause: Place, now: int) -> int:
        """Count a load that is requested now, in µs since the epoch. Return how long it has to wait, in µs.

        `cause` is where the log shows why. If a generation is lost, the next one reports the same cause again: that is
        the same load.
        """
        causes = self._causes.setdefault(table, {})
        if cause not in causes:
            if causes and now >= max(causes.values()) + _AGAIN_US:
                causes.clear()
            causes[cause] = now
        times = list(causes).index(cause) + 1
        return min(_FIRST_US * 2 ** (times - 2), _LONGEST_US) if times > 1 else 0

"""The pauses before a table is loaded again, which double each time if it has to be loaded again and again."""

from databus_changes.tables import TableName

_FIRST_US = 10 * 1_000_000
_LONGEST_US = 3600 * 1_000_000
#: a load within this time after the one before is one more of the same row of loads
_AGAIN_US = 2 * _LONGEST_US


class Pauses:
    """Remembers how often tables were loaded again."""

    def __init__(self) -> None:
        #: table → how often within a short time, and when last
        self._loads: dict[TableName, tuple[int, int]] = {}

    def next_us(self, table: TableName, now: int) -> int:
        """Count a load that is requested now, in µs since the epoch. Return how long it has to wait, in µs."""
        times, last = self._loads.get(table, (0, 0))
        times = times + 1 if now < last + _AGAIN_US else 1
        self._loads[table] = times, now
        return min(_FIRST_US * 2 ** (times - 2), _LONGEST_US) if times > 1 else 0

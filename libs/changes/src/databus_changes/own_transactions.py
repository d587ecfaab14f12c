"""Transactions that are not the source's: they are inserted at boundaries between its transactions."""

from databus_binlog import Position
from databus_changes.group import Group
from databus_changes.place import Place
from databus_changes.reached import Reached
from databus_core.events import Begin, Commit


class OwnTransactions:
    """Begins and ends such transactions. `in_order` and `gtids`: as in `Translator`."""

    def __init__(self, reached: Reached, group: Group, *, in_order: bool, gtids: bool) -> None:
        self._reached = reached
        self._group = group
        self._in_order = in_order
        self._gtids = gtids

    @property
    def place(self) -> Place | None:
        """The current place if it is a boundary, and certain."""
        return None if self._group.is_open else self._reached.place

    def boundary(self) -> Position:
        """Return the current boundary's position, without a file if the server may have its transactions elsewhere.

        Raises ValueError if `place` is None.
        """
        place = self._boundary()
        return Position(self._reached.executed.all() if self._gtids else "", *(place if self._in_order else ("", 0)))

    def begin(self) -> Begin:
        """Begin a transaction at the current boundary."""
        file, offset = self._boundary()
        return Begin(self._reached.begin(), "", file, 0, 0, self._reached.time_us, offset, offset)

    def commit(self) -> Commit:
        """End the transaction."""
        file, offset = self._boundary()
        return Commit(self._reached.executed.take(), file, offset, None, offset)

    def _boundary(self) -> Place:
        if self.place is None:
            raise ValueError("a transaction of the source is open, or the place is not known")
        return self.place

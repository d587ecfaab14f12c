"""The statement that changed a row, for formats that publish it.

A server that logs statements writes each one (Rows_query, Annotate_rows) before the first of its rows events. The
statement's other rows events follow directly after the first.
"""

from databus_messages.formats.base import Change

_NO_EVENT = (-1, -1)


class RowsQueries:
    """Finds the statement that caused each change of a transaction.

    Changes of one binlog event share `first` and `end`: an event can be split by partition.
    """

    def __init__(self) -> None:
        self._query = ""
        self._event = _NO_EVENT

    def reset(self) -> None:
        """Start a new transaction."""
        self._event = _NO_EVENT

    def query_of(self, change: Change) -> str | None:
        """Return the statement; None if it was not logged, or if its first event was not published here."""
        event = (change.first, change.end)
        if change.query is not None:
            self._query = change.query.decode(errors="replace")
        elif event != self._event and change.start != self._event[1]:
            return None
        self._event = event
        return self._query

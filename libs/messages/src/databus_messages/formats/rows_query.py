"""Finds the statement that changed a row, for formats that publish the statement.

With binlog_rows_query_log_events (MySQL) or binlog_annotate_row_events (MariaDB) the server logs the text of each
statement (Rows_query, Annotate_rows) before the statement's first rows event. The statement's other rows events follow
its first one directly.
"""

from databus_messages.formats.base import Change

_NO_EVENT = (-1, -1)


class RowsQueries:
    """Finds the statement that caused each change of a transaction.

    `Change.query` is set only in a statement's first event; the events that directly follow it have the same statement.
    """

    def __init__(self) -> None:
        self._query = ""
        #: `first` and `end` of the latest event with a known statement; they are the same in all changes of an event
        self._event = _NO_EVENT

    def reset(self) -> None:
        """Forget the latest event: a new transaction begins."""
        self._event = _NO_EVENT

    def query_of(self, change: Change) -> str | None:
        """Return the statement; None if it was not logged, or if a rule hides it.

        It is also None if the rule that publishes the change leaves out an earlier event of the statement.

        In a compressed transaction, where all events have the same offsets, it is None after a statement's first event.
        """
        event = (change.first, change.end)
        if change.query is not None:
            self._query = change.query.decode(errors="replace")
        elif event != self._event and change.start != self._event[1]:
            return None
        self._event = event
        return self._query

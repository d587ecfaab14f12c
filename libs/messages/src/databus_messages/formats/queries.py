"""Which statement made rows: the binlog tells it at the first of a statement's events, the others come right behind."""

from databus_messages.formats.base import Change

_NO_EVENT = (-1, -1)


class Queries:
    """Knows the statement of each change of a transaction. Changes of one event have the same first row and end."""

    def __init__(self) -> None:
        self._query = ""
        self._event = _NO_EVENT

    def forget(self) -> None:
        """Begin a transaction."""
        self._event = _NO_EVENT

    def of(self, change: Change) -> str | None:
        """Give the statement that made the rows; None where it was not told, or its first event not to us."""
        event = (change.first, change.end)
        if change.query is not None:
            self._query = change.query.decode(errors="replace")
        elif event != self._event and change.start != self._event[1]:
            return None
        self._event = event
        return self._query

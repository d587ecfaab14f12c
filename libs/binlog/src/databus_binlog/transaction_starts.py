"""Recognises the events that start a transaction, in the logs of all servers."""

from __future__ import annotations

from databus_binlog.events import AnyEvent, Gtid, Query, Xid


class TransactionStarts:
    """Recognises the events that start a transaction."""

    def __init__(self) -> None:
        #: whether GTID events start every transaction; without GTIDs MySQL 5.6 logs none
        self._gtids = False
        self._open = False

    def is_start(self, event: AnyEvent) -> bool:
        """Return whether the next event of the log starts a transaction."""
        if isinstance(event, Gtid) or self._gtids:
            self._gtids = True
            return isinstance(event, Gtid)
        was_open = self._open
        if isinstance(event, Query):
            self._open = event.query == b"BEGIN" or (was_open and event.query not in {b"COMMIT", b"ROLLBACK"})
        elif isinstance(event, Xid):
            self._open = False
        return isinstance(event, Query) and not was_open

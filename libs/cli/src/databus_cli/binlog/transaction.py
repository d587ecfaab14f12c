"""What the events show of the transaction that is being read."""

from databus_binlog import AnyEvent, FormatDescription, Gtid, OversizedRows, Query, Rows, RowsQuery
from databus_binlog.transaction_starts import TransactionStarts

_SECOND_US = 1_000_000


class OpenTransaction:
    """Collects what is known of the open transaction."""

    def __init__(self) -> None:
        self._starts = TransactionStarts()
        #: empty if it has none, or if it began before the first event
        self.gtid = ""
        #: when it was committed, in µs since the epoch; in whole seconds, if the server logs no more
        self.time_us = 0
        #: id of its connection; 0 if it is not logged, as for rows of MariaDB before 11.5
        self.thread_id = 0
        #: where it begins
        self.file, self.offset = "", 0
        #: the statement that changed the next rows, if the server logs it
        self.query: bytes | None = None

    def add(self, event: AnyEvent) -> bool:
        """Take the next event; return whether a transaction, or with the first event a part of one, begins."""
        begins = self._starts.is_start(event) or not self.file
        if begins or isinstance(event, FormatDescription):  # the next file may have no GTIDs
            self._begin(event)
        elif isinstance(event, Query):
            self.thread_id = self.thread_id or event.thread_id
        elif isinstance(event, RowsQuery):
            self.query = event.query
        elif isinstance(event, Rows | OversizedRows) and event.statement_end:
            self.query = None
        return begins

    def _begin(self, event: AnyEvent) -> None:
        self.file, self.offset = event.file, event.start
        self.time_us = event.time * _SECOND_US
        self.gtid, self.thread_id, self.query = "", 0, None
        if isinstance(event, Gtid):
            self.gtid, self.thread_id = event.gtid, event.thread_id
            self.time_us = event.commit_time_us or self.time_us
        elif isinstance(event, Query):
            self.thread_id = event.thread_id

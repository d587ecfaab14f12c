"""Report XA transactions that stay prepared: a metric with the age of each, and one line in the log."""

import time
from collections.abc import Iterable

from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import reader as metrics

log = get_logger(__name__)

#: age from which a transaction is reported
_REPORTED_SECONDS = 60.0


class OpenTransactions:
    """The transactions that are reported at present."""

    def __init__(self) -> None:
        self._reported: set[str] = set()
        metrics.PREPARED_SECONDS.clear()

    def report(self, transactions: Iterable[tuple[str, int]]) -> None:
        """Report transactions, given as XID and time of the XA PREPARE (µs since the epoch), and no others any more."""
        now, reported = time.time(), set[str]()
        for xid, time_us in transactions:
            if (age := now - time_us / 1e6) < _REPORTED_SECONDS:
                continue
            reported.add(xid)
            metrics.PREPARED_SECONDS.labels(xid).set(age)
            if xid not in self._reported:
                text = (
                    "has been prepared for more than a minute: its rows are published when it is committed; the server"
                )
                log.warning(
                    LogEvent.PREPARED,
                    f"XA transaction {xid} {text} has to keep its binlog until then, or XA ROLLBACK it",
                )
        for xid in self._reported - reported:
            metrics.PREPARED_SECONDS.remove(xid)
        self._reported = reported

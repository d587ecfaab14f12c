"""Ordinary transactions, from the bytes of databus-binlog's decoder into the bytes of the pipe's events.

Which ones is said in binlog_walk.pyx.
"""

from collections.abc import Callable
from typing import Protocol, final

class Executed(Protocol):
    """Collects the GTIDs of executed transactions (databus_changes.executed)."""

    @property
    def pending(self) -> bool:
        """Whether there are GTIDs that no event has reported yet."""

    def add_set(self, gtids: str) -> None:
        """Collect the GTIDs of transactions without rows, as a GTID set, for the next event that reports GTIDs."""

    def take(self, gtid: str) -> str:
        """Return what was collected and a transaction's own GTID as one GTID set, which an event reports."""

    def note(self, gtids: str) -> None:
        """Take note of GTIDs that events have reported, each its own."""

@final
class BinlogWalk:
    """Walks the events of one binlog. What was taken last is in the attributes.

    gtids: whether positions carry a GTID set.
    table_of: fingerprint in a rows event → fingerprint of the pipe's `Table`; None if the rows are not to be taken.
        It is called once for each table in a call of `take`.
    """

    #: number of events of the pipe: Begin, RowsEvent, Commit
    events: int
    #: number of transactions with rows
    transactions: int
    #: number of row images
    rows: int
    #: file and offset at which the last transaction ends
    file: str
    end: int
    #: when the last transaction was committed, in µs since the epoch
    time_us: int
    #: whether the last transaction has rows, so that its Commit reports the position
    has_rows: bool

    def __init__(
        self, *, mariadb: bool, gtids: bool, table_of: Callable[[str], str | None], executed: Executed
    ) -> None: ...
    @property
    def done(self) -> bool:
        """Whether all events were passed."""

    def begin(self, data: bytes, kept: bytes) -> None:
        """Begin with what `keep` returned before, and continue with the first event of `data`.

        `data`: as in databus_binlog.events.Events. Raises MalformedEvents.
        """

    def take(self, ordinal: int, size: int) -> bytes | None:
        """Take the next ordinary transactions, until their events have `size` bytes; return these events in msgpack.

        `ordinal`: that of the last transaction with a Begin. Returns None if the next event begins no ordinary
        transaction that is complete. Raises MalformedEvents.
        """

    def keep(self, limit: int) -> bytes:
        """Pass the rest of the data and return it, if `take` has found there the beginning of an ordinary transaction.

        Otherwise, or if it has more than `limit` bytes, passes nothing and returns b"".
        """

    def pass_group(self) -> tuple[bytes, int]:
        """Pass the next event, and all others before the next GTID event.

        Returns them in msgpack, and their number. Raises MalformedEvents.
        """

"""The progress that the next commit will record: how far a generation has been sent to Kafka."""

from collections.abc import Iterable

from databus_binlog import GtidSet, Position
from databus_core.errors import GenerationLost
from databus_core.events import Begin, Commit, Decided, Heartbeat, Prepared, Start
from databus_core.progress import PreparedTransaction, Progress


class ProgressTracker:
    """Counts transactions and collects their GTIDs, which are added to the GTID set many at a time."""

    def __init__(self, progress: Progress) -> None:
        self._transaction = progress.transaction
        self._gtids: GtidSet | None = None
        #: GTIDs of committed transactions that are not in `_gtids` yet
        self._committed: list[str] = []
        self._server, self._file, self._end, self._time_us = "", "", 0, 0
        self._in_order = False
        self._begin: Begin | None = None
        #: XID → XA transaction that is prepared
        self._prepared = {each.xid: each for each in progress.prepared}
        self._reset, self._routes = progress.reset, progress.routes
        self._former_server, self._other_log_until = progress.server, progress.other_log_until
        self._topics_opened = progress.topics_opened
        #: whether there is progress since the last call of `take`
        self.moved = False

    @property
    def transaction(self) -> int:
        """Ordinal of the last complete transaction."""
        return self._transaction

    @property
    def in_transaction(self) -> bool:
        """Whether a source transaction is open."""
        return self._begin is not None

    def start(self, event: Start) -> None:
        """Begin where the reader begins: at Kafka's progress or, on a first or new start, at the resolved position."""
        self._gtids = GtidSet.parse(event.flavor, event.position.gtid_set)
        self._server, self._in_order = event.server, event.in_order
        if event.anew:
            self._prepared.clear()
        if event.anew or self._former_server not in ("", event.server):
            self._other_log_until = self._transaction
        self._move(event.position.file, event.position.offset, event.time_us)

    def begin(self, event: Begin) -> None:
        """Accept the next transaction. Raises GenerationLost for any other."""
        if self._gtids is None or event.transaction != self._transaction + 1:
            raise GenerationLost(f"transaction {self._transaction + 1} is missing")
        self._begin = event

    def commit(self, event: Commit) -> None:
        """Advance to the end of the open transaction. Raises GenerationLost if none is open."""
        begin, self._begin = self._begin, None
        if begin is None:
            raise GenerationLost("the stream contains a commit outside of a transaction")
        self._transaction = begin.transaction
        if event.executed == begin.gtid:
            self._committed.append(begin.gtid)
        else:
            self._merge(event.executed)
        self._file, self._end, self._time_us, self.moved = event.file, event.end, begin.time_us, True

    def pass_transactions(self, last: int, executed: Iterable[str], file: str, end: int, time_us: int) -> None:
        """Advance over complete transactions: up to an ordinal, with these GTID sets, and where and when the last ends.

        The caller has checked that none is missing.
        """
        for gtids in executed:
            self._merge(gtids)
        self._transaction = last
        self._move(file, end, time_us)

    def skip(self, event: Heartbeat) -> None:
        """Advance to a position between transactions; nothing was captured between the last position and this one."""
        self._merge(event.executed)
        self._move(event.file, event.end, event.time_us)

    def prepare(self, event: Prepared) -> None:
        """Advance to the position before a prepared transaction, and keep the transaction until `decide`."""
        self._merge(event.executed)
        self._move(event.file, event.start, self._time_us)
        self._prepared[event.xid] = PreparedTransaction(
            xid=event.xid,
            gtid=event.gtid,
            position=self._position,
            server=self._server,
            in_order=self._in_order,
            time_us=event.time_us,
        )

    def decide(self, event: Decided) -> None:
        """Forget a prepared transaction. If it is committed, its rows are in the open transaction."""
        self._prepared.pop(event.xid, None)
        self.moved = True

    def open_topics(self) -> None:
        """Note that records are sent to topics that this generation has not sent any to before."""
        self._topics_opened = (self._topics_opened or 0) + 1

    def take(self) -> Progress:
        """Return the progress so far, to be committed."""
        self.moved = False
        self._merge("")
        prepared = tuple(self._prepared.values())
        return Progress(
            self._position,
            self._transaction,
            self._time_us,
            self._server,
            self._in_order,
            prepared=prepared,
            reset=self._reset,
            routes=self._routes,
            other_log_until=self._other_log_until,
            topics_opened=self._topics_opened,
        )

    @property
    def _position(self) -> Position:
        return Position(str(self._gtids or ""), self._file, self._end)

    def _merge(self, executed: str) -> None:
        """Add the GTIDs of the committed transactions to the set, and then the `executed` ones."""
        if self._gtids is None:
            raise GenerationLost("the generation does not begin with a Start event")
        self._gtids.add_all(self._committed)
        self._committed.clear()
        self._gtids.merge(executed)

    def _move(self, file: str, end: int, time_us: int) -> None:
        self._file, self._end, self._time_us = file, end, time_us
        self.moved = True

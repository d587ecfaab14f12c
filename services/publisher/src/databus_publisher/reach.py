"""How far the events of a generation reach: the progress that the next commit tells."""

from databus.errors import GenerationLost
from databus.events import Begin, Commit, Heartbeat, Start
from databus.progress import Progress
from databus_binlog import GtidSet, Position


class Reach:
    """Counts transactions, and keeps the GTID set, which becomes text only when a progress is asked for."""

    def __init__(self, progress: Progress) -> None:
        self._transaction = progress.transaction
        self._gtids: GtidSet | None = None
        self._server, self._file, self._end, self._time_us = "", "", 0, 0
        self._in_order = False
        #: since the last progress
        self.moved = False

    def start(self, event: Start) -> None:
        """Begin where the reader does, which is Kafka's progress or, on a first start, what that was resolved to."""
        self._gtids = GtidSet.parse(event.flavor, event.position.gtid_set)
        self._server, self._in_order = event.server, event.in_order
        self._move(event.position.file, event.position.offset, event.time_us)

    def follow(self, event: Begin) -> None:
        """Take note that a transaction begins. Raises GenerationLost unless it is the next one."""
        if self._gtids is None or event.transaction != self._transaction + 1:
            raise GenerationLost(f"transaction {self._transaction + 1} is missing")

    def ended(self, begin: Begin, event: Commit) -> None:
        """Reach the end of a transaction."""
        self._transaction = begin.transaction
        if self._gtids is not None and event.executed == begin.gtid:
            self._gtids.add(begin.gtid)  # nothing else: nearly always, and far cheaper
        else:
            self._execute(event.executed)
        self._move(event.file, event.end, begin.time_us)

    def passed(self, event: Heartbeat) -> None:
        """Reach a place between transactions."""
        self._execute(event.executed)
        self._move(event.file, event.end, event.time_us)

    def progress(self) -> Progress:
        """Tell what is reached, and that it has not moved since."""
        self.moved = False
        position = Position(str(self._gtids or ""), self._file, self._end)
        return Progress(position, self._transaction, self._time_us, self._server, self._in_order)

    def _execute(self, executed: str) -> None:
        if self._gtids is None:
            raise GenerationLost("the generation has no start")
        self._gtids.merge(executed)

    def _move(self, file: str, end: int, time_us: int) -> None:
        self._file, self._end, self._time_us = file, end, time_us
        self.moved = True

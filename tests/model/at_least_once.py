"""The guarantees without Kafka's transactions: nothing is lost, and each attempt is in order and without gaps.

An attempt is what one publisher sends in one generation (see `databus_core.pipe`).
"""

from databus_core.progress import Progress
from model.memory_kafka import MemoryKafka, MemoryKafkaWithoutTransactions
from model.source import Row, numbers_in
from model.world import Violated, World


class AtLeastOnceWorld(World):
    """A world in which publishers use no transactions, and do not fence one another."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: set[Row] = set()
        #: captured transactions before the pipeline's start; None until the first position is committed
        self._skipped: set[int] | None = None

    def make_kafka(self) -> MemoryKafka:
        return MemoryKafkaWithoutTransactions()

    def drain(self) -> None:
        """Drain with one publisher. Without fencing, two would replace each other for ever; leases prevent that."""
        self.crash(self.publishers, 1)
        super().drain()

    def verify(self) -> None:
        """Verify that all rows before a progress were sent, and recent attempts are in a host's order without gaps."""
        assert isinstance(self.kafka, MemoryKafkaWithoutTransactions)
        for record in self.kafka.log:
            if isinstance(record, Progress):
                self._verify_progress(record)
            else:
                self._sent.add(record)
        if self.kafka.log:
            self.kafka.log.clear()
            for rows in self.kafka.attempts[-4:]:
                self._verify_attempt(rows)

    def _verify_progress(self, progress: Progress) -> None:
        if progress.position is None:
            if self._skipped is not None:
                raise Violated("a progress without a position would start the pipeline over")
            return
        reached = self.source.captured(numbers_in(progress.position))
        skipped = {n for n in reached if not self._sent.issuperset(self.source.rows_of(n))}
        if self._skipped is None:
            if self._sent or skipped not in [self.source.captured(start) for start in self.source.starts]:
                raise Violated(f"the first position was committed after rows, or no reader started there: {progress}")
            self._skipped = skipped
        if not skipped <= self._skipped:
            raise Violated(f"lost: rows of {skipped - self._skipped} were not sent before {progress}")

    def _verify_attempt(self, rows: list[Row]) -> None:
        numbers = list(dict.fromkeys(number for number, _ in rows))
        complete = [row for number in numbers for row in self.source.rows_of(number)]
        orders = [[n for n in self.source.order(host) if n in numbers] for host in (0, 1)]
        if rows != complete[: len(rows)] or not any(numbers == order for order in orders):
            raise Violated(f"the rows of an attempt are not in the order of a host: {rows}")

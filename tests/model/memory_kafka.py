"""A Kafka in memory, as far as the publisher's records and progress go: with transactions and fencing, or without."""

from typing import NamedTuple

import msgspec

from databus.errors import Fenced, KafkaUnavailable
from databus.progress import Progress
from model.source import Row, row_of
from model.turns import request

#: a record counts as so much: every second one makes the next end of a source transaction a commit
_RECORD_BYTES = 2 * 2**20


class Committed(NamedTuple):
    """What one commit made visible."""

    rows: list[Row]
    progress: Progress


class MemoryKafka:
    """The pipeline's topics and the state of its transactional id."""

    #: a newer producer ends what an older one may do
    fences = True
    #: a newer producer aborts what an older one left open
    aborts = True

    def __init__(self) -> None:
        self.commits: list[Committed] = []
        self.epoch = 0
        self._open: list[Row] = []

    @property
    def progress(self) -> Progress | None:
        return self.commits[-1].progress if self.commits else None

    def begin_epoch(self) -> int:
        """InitProducerId: from here on the epochs before count for nothing."""
        if self.aborts:
            self._open = []
        self.epoch += 1
        return self.epoch

    def send(self, epoch: int, rows: list[Row]) -> None:
        self._verify(epoch)
        self._open += rows

    def commit(self, epoch: int, progress: Progress) -> None:
        self._verify(epoch)
        self.commits.append(Committed(self._open, progress))
        self._open = []

    def abort(self, epoch: int) -> None:
        self._verify(epoch)
        self._open = []

    def _verify(self, epoch: int) -> None:
        if self.fences and epoch != self.epoch:
            raise Fenced("another publisher is active")


class MemoryProducer:
    """Stands where databus_publisher.producer.Producer does."""

    def __init__(self, kafka: MemoryKafka, epoch: int) -> None:
        self._kafka = kafka
        self._epoch = epoch
        self.size = 0

    async def send(self, topic: str, partition: int, key: bytes, value: bytes) -> None:
        self.size += _RECORD_BYTES
        rows = [row_of(cells) for cells in msgspec.json.decode(value)["Rows"]]
        await request(lambda: self._kafka.send(self._epoch, rows), KafkaUnavailable("not sent"))

    async def commit(self, progress: Progress) -> None:
        await request(lambda: self._kafka.commit(self._epoch, progress), KafkaUnavailable("not confirmed"))
        self.size = 0

    async def partitions(self, topic: str) -> int:
        return 1

    async def abort(self) -> None:
        await request(lambda: self._kafka.abort(self._epoch), KafkaUnavailable("not confirmed"))
        self.size = 0

"""A Kafka in memory for the publisher's records and progress, with or without transactions and fencing."""

from typing import NamedTuple

import msgspec

from databus_core.errors import Fenced, KafkaUnavailable
from databus_core.names import schema_topic
from databus_core.progress import Progress
from databus_core.settings.publisher import Compression
from databus_messages.formats.base import KeyValueRecords, Record
from databus_messages.routing.partitions import Partition
from databus_publisher.batches import Limit
from model.source import Row, row_of
from model.turns import request


class Committed(NamedTuple):
    """The rows and the progress of one commit."""

    rows: list[Row]
    progress: Progress


class MemoryKafka:
    """Kafka with transactions: keeps the commits, the open transaction, and the epoch of the newest producer."""

    #: whether a publisher commits its progress again before it opens a generation
    commits_to_open = True
    #: whether a newer producer fences an older one
    fences = True
    #: whether a newer producer aborts the open transaction of an older one
    aborts = True

    def __init__(self) -> None:
        self.commits: list[Committed] = []
        self.epoch = 0
        self._open: list[Row] = []

    @property
    def progress(self) -> Progress | None:
        return self.commits[-1].progress if self.commits else None

    def begin_epoch(self) -> int:
        """Handle InitProducerId: abort the open transaction, and fence earlier epochs from now on."""
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


class MemoryKafkaWithoutTransactions(MemoryKafka):
    """Kafka without transactions: every record and every progress is visible at once, from any producer."""

    commits_to_open = False  # a replaced publisher's commit would be visible, too

    def __init__(self) -> None:
        super().__init__()
        #: the rows of each attempt: those that one publisher sent in one generation
        self.attempts: list[list[Row]] = []
        #: epoch → rows of its current attempt
        self._current: dict[int, list[Row]] = {}
        #: the last progress
        self.stored: Progress | None = None
        #: rows and progress records in the order of their arrival
        self.log: list[Row | Progress] = []

    @property
    def progress(self) -> Progress | None:
        return self.stored

    def begin_epoch(self) -> int:
        self.epoch += 1
        return self.epoch

    def send(self, epoch: int, rows: list[Row]) -> None:
        if epoch not in self._current:
            self._current[epoch] = []
            self.attempts.append(self._current[epoch])
        self._current[epoch].extend(rows)
        self.log += rows

    def commit(self, epoch: int, progress: Progress) -> None:
        self.stored = progress
        self.log.append(progress)

    def abort(self, epoch: int) -> None:
        self._current.pop(epoch, None)


class MemoryProducer:
    """Replaces databus_publisher.producer.Producer, without batches."""

    def __init__(self, kafka: MemoryKafka, epoch: int) -> None:
        self._kafka = kafka
        self._epoch = epoch
        #: the progress of a commit that was started
        self.committing: Progress | None = None

    def set_limit(self, topic: str, limit: Limit, compression: Compression = "none") -> None:
        """Do nothing: records of any size are accepted."""

    def open_batch(self, partition: Partition) -> None:
        """Leave all transactions to the Python path."""

    def fill(self, partition: Partition, records: KeyValueRecords, first: int = 0) -> int:
        return 0

    async def send(self, partition: Partition, record: Record) -> bool:
        if record.value is not None and not partition.topic.startswith(schema_topic("")):
            await self.finish_commit()
            rows = [row_of(cells) for cells in msgspec.json.decode(record.value)["Rows"]]
            await request(lambda: self._kafka.send(self._epoch, rows), KafkaUnavailable("not sent"))
        return True

    async def limit_memory(self) -> None:
        """Do nothing: no record is buffered."""

    async def recommit_progress(self, progress: Progress) -> None:
        if self._kafka.commits_to_open:
            await self.start_commit(progress)
            await self.finish_commit()

    async def start_commit(self, progress: Progress) -> None:
        """Commit when the next row is sent, or in `finish_commit`: meanwhile anything may happen elsewhere."""
        self.committing = progress

    async def finish_commit(self) -> None:
        if progress := self.committing:
            await request(lambda: self._kafka.commit(self._epoch, progress), KafkaUnavailable("not confirmed"))
            self.committing = None

    async def partitions(self, topic: str) -> int:
        return 1

    async def abort(self) -> None:
        await self.finish_commit()
        await request(lambda: self._kafka.abort(self._epoch), KafkaUnavailable("not confirmed"))

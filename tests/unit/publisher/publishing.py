"""A producer that can refuse records, and topics, as stand-ins; and events of one table."""

import asyncio

import msgspec

from databus_binlog import Position
from databus_core.dead_letters import DeadLetter, read_headers
from databus_core.events import (
    Action,
    Begin,
    Column,
    Commit,
    Event,
    RowsEvent,
    SnapshotEvent,
    Start,
    Table,
    TableDefinition,
    encode_events,
)
from databus_core.names import SEQUENCE_HEADER
from databus_core.progress import Progress
from databus_core.settings.publisher import Compression
from databus_messages.formats.base import KeyValueRecords, Record
from databus_messages.routing.partitions import Partition
from databus_publisher.batches import Limit
from databus_publisher.publication import Publication

TABLE = Table(schema="shop", name="items", columns=(Column(name="id", type="int", raw_type="int"),), primary_key=(0,))
START = [Start(Position("", "binlog.1", 4), "server", "mysql", 1, in_order=True), TableDefinition(TABLE)]
ROW = RowsEvent(TABLE.fingerprint, Action.INSERT, 0, 10, 20, msgspec.Raw(msgspec.msgpack.encode([[b"1"]])))
COMMIT = Commit("", "binlog.1", 30, 7)
CHUNK = SnapshotEvent(TABLE.fingerprint, 0, ROW.rows, 1)


class Producer:
    """A stand-in for databus_publisher.producer.Producer."""

    def __init__(self) -> None:
        #: whether records fit
        self.accepts = True
        #: raised by `send` and by `finish_commit`
        self.failure: Exception | None = None
        self.commit_failure: Exception | None = None
        #: commits that have ended, and the one that was started
        self.commits: list[Progress] = []
        self.started: Progress | None = None
        self.committing: asyncio.Future[None] | None = None
        #: records for the tables' topic
        self.records: list[Record] = []
        self.letters: list[tuple[DeadLetter, bytes | None]] = []
        self.letter_sequences: list[bytes] = []

    def set_limit(self, topic: str, limit: Limit, compression: Compression = "none") -> None: ...

    def limit(self, topic: str) -> Limit:
        return Limit(10)

    def open_batch(self, partition: Partition) -> None:
        """Leave all transactions to the Python path."""

    def fill(self, partition: Partition, records: KeyValueRecords, first: int = 0) -> int:
        if self.failure or not self.accepts or partition.topic != "t":
            return 0
        self.records += [*records][first:]
        return len(records) - first

    async def send(self, partition: Partition, record: Record) -> bool:
        if self.failure:
            raise self.failure
        if partition.topic == "t":
            self.records.append(record)
        if partition.topic == "letters":
            self.letters.append((read_headers(record.headers), record.value))
            self.letter_sequences.append(dict(record.headers)[SEQUENCE_HEADER])
        return self.accepts

    async def limit_memory(self) -> None: ...

    async def partitions(self, topic: str) -> int:
        return 1

    async def start_commit(self, progress: Progress) -> None:
        self.started, self.committing = progress, asyncio.get_running_loop().create_future()

    async def abort(self) -> None: ...

    async def finish_commit(self) -> None:
        if self.started and self.commit_failure:
            raise self.commit_failure
        if self.started:
            self.commits.append(self.started)
            self.started = self.committing = None


class Topics:
    """A stand-in for databus_publisher.topics.Topics."""

    async def ensure(self, topic: str, partitions: int | None = None) -> None: ...

    async def ensure_dead_letters(self) -> str:
        return "letters"

    async def limit(self, topic: str) -> Limit:
        return Limit(10)

    async def raised_limit(self, topic: str) -> None: ...


def begin(transaction: int) -> Begin:
    return Begin(transaction, "", "binlog.1", 1, 1, 1)


async def add(publication: Publication, *events: Event) -> None:
    await publication.add(encode_events(events))

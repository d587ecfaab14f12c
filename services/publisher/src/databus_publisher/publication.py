"""The events of one generation become records in Kafka transactions that end where source transactions end."""

import time
import zlib
from collections import Counter

from databus import metrics, names
from databus.errors import GenerationLost
from databus.events import (
    Begin,
    Commit,
    Event,
    Heartbeat,
    QueryEvent,
    RowsEvent,
    SchemaDefinition,
    Start,
    Table,
    TableDefinition,
)
from databus.formats.databus import Encoder
from databus.progress import Progress
from databus.settings import Settings
from databus_publisher.history import History
from databus_publisher.producer import Producer
from databus_publisher.reach import Reach
from databus_publisher.topics import Topics

#: The first end of a source transaction after this many bytes commits, though more may be waiting.
_COMMIT_BYTES = 4 * 2**20


class Publication:
    """Encodes, routes and sends events, and knows how far they reach."""

    def __init__(self, settings: Settings, producer: Producer, topics: Topics, progress: Progress) -> None:
        self._settings = settings
        self._producer = producer
        self._topics = topics
        self._encoder = Encoder()
        self._history = History(producer, settings.name)
        self._tables: dict[str, Table] = {}
        self._routes: dict[tuple[str, str], tuple[str, int]] = {}
        self._reach = Reach(progress)
        #: what the last commit reached
        self.committed = progress
        self._begin: Begin | None = None
        self._records: Counter[str] = Counter()

    @property
    def committable(self) -> bool:
        """Whether there is something to commit and no source transaction is open."""
        return self._begin is None and self._reach.moved

    async def add(self, events: list[Event]) -> None:
        """Send the records of events, in order."""
        for event in events:
            match event:
                case RowsEvent():
                    table, begin = self._context(event.table)
                    await self._send(table, *self._encoder.rows(table, begin.file, event))
                case Begin():
                    self._reach.follow(event)
                    self._begin = event
                case Commit():
                    await self._end(event)
                case TableDefinition():
                    self._tables[event.table.fingerprint] = event.table
                    await self._history.table(event.table)
                case SchemaDefinition():
                    await self._history.schema(event)
                case QueryEvent():
                    table, begin = self._context(event.table)
                    await self._send(table, *self._encoder.query(table, begin.file, event))
                case Heartbeat():
                    self._reach.passed(event)
                case Start():
                    self._reach.start(event)
                    if self.committed.position is None:
                        await self._history.begin()

    async def commit(self) -> None:
        """Commit all whole source transactions sent so far, with their progress."""
        progress = self._reach.progress()
        await self._producer.commit(progress)
        metrics.KAFKA_COMMITS.inc()
        for topic, records in self._records.items():
            metrics.RECORDS_PUBLISHED.labels(topic).inc(records)
        self._records.clear()
        metrics.TRANSACTIONS_PUBLISHED.inc(progress.transaction - self.committed.transaction)
        metrics.PUBLISH_LAG.set(max(0.0, time.time() - progress.time_us / 1e6))
        self.committed = progress

    def _context(self, fingerprint: str) -> tuple[Table, Begin]:
        table = self._tables.get(fingerprint)
        if table is None or self._begin is None:
            raise GenerationLost("an event came before its table's definition or its transaction's beginning")
        return table, self._begin

    async def _send(self, table: Table, key: bytes, value: bytes) -> None:
        route = self._routes.get((table.schema, table.name)) or await self._route(table)
        await self._producer.send(*route, key, value)
        self._records[route[0]] += 1

    async def _route(self, table: Table) -> tuple[str, int]:
        """Find topic and partition of a table: all its changes go to one partition, in order."""
        topic = names.table_topic(self._settings.publisher.topic, self._settings.name, table)
        await self._topics.ensure(topic)
        partition = zlib.crc32(f"{table.schema}.{table.name}".encode()) % await self._producer.partitions(topic)
        route = self._routes[table.schema, table.name] = topic, partition
        return route

    async def _end(self, event: Commit) -> None:
        if self._begin is None:
            raise GenerationLost("a transaction ended that did not begin")
        self._reach.ended(self._begin, event)
        self._begin = None
        if self._producer.size >= _COMMIT_BYTES:
            await self.commit()

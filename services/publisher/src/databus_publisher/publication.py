"""The events of one generation become records in Kafka transactions that end where source transactions end."""

import time

from databus import metrics
from databus.errors import GenerationLost, PoisonError
from databus.events import (
    Begin,
    Commit,
    Event,
    Heartbeat,
    OversizedRow,
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
from databus_publisher.messages import Message
from databus_publisher.oversize import Outlet
from databus_publisher.partitions import spread
from databus_publisher.producer import Producer
from databus_publisher.reach import Reach
from databus_publisher.routes import Route, Routes
from databus_publisher.topics import Topics

#: The first end of a source transaction after this many bytes of entries commits, though more may be waiting.
COMMIT_BYTES = 8 * 2**20


class Publication:
    """Encodes, routes and sends events, and knows how far they reach."""

    def __init__(self, settings: Settings, producer: Producer, topics: Topics, progress: Progress) -> None:
        self._producer = producer
        self._encoder = Encoder()
        self._history = History(producer, settings.name)
        self._outlet = Outlet(settings, producer, topics, self._encoder)
        self._finder = Routes(settings, producer, topics)
        self._tables: dict[str, Table] = {}
        self._routes: dict[str, Route] = {}
        self._reach = Reach(progress)
        #: what the last commit reached
        self.committed = progress
        self._begin: Begin | None = None
        self._size = 0

    @property
    def committable(self) -> bool:
        """Whether there is something to commit and no source transaction is open."""
        return self._begin is None and self._reach.moved

    @property
    def half_sent(self) -> bool:
        """Whether a source transaction is open."""
        return self._begin is not None

    async def add(self, events: list[Event], size: int) -> None:
        """Send the records of an entry's events, in order; `size` is that of the entry, in bytes."""
        self._size += size
        for event in events:
            match event:
                case RowsEvent():
                    route, begin = self._routes.get(event.table) or await self._route(event.table), self._opened()
                    if not self._append(route, begin, event):
                        await self._send_rows(route, begin, event)
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
                    await self._send_statement(event)
                case OversizedRow():
                    await self._send_unread(event)
                case Heartbeat():
                    self._reach.passed(event)
                case Start():
                    self._reach.start(event)
                    if self.committed.position is None:
                        await self.begin()
        await self._producer.relieve()

    async def begin(self) -> None:
        """Commit a pipeline's first position and tables before its first row: it must not be resolved twice."""
        await self._history.begin()
        await self.commit()

    async def commit(self) -> None:
        """Commit all whole source transactions sent so far, with their progress."""
        progress = self._reach.progress()
        await self._producer.commit(progress)
        self._size = 0
        metrics.KAFKA_COMMITS.inc()
        metrics.TRANSACTIONS_PUBLISHED.inc(progress.transaction - self.committed.transaction)
        metrics.PUBLISH_LAG.set(max(0.0, time.time() - progress.time_us / 1e6))
        self.committed = progress

    def _opened(self) -> Begin:
        if self._begin is None:
            raise GenerationLost("an event came before its transaction's beginning")
        return self._begin

    async def _route(self, fingerprint: str) -> Route:
        table = self._tables.get(fingerprint)
        if table is None:
            raise GenerationLost("an event came before its table's definition")
        route = self._routes[fingerprint] = await self._finder.find(table)
        return route

    def _append(self, route: Route, begin: Begin, event: RowsEvent) -> bool:
        """Take the fast path, which nearly all events go: one message, into a batch that has room for it."""
        if route.lane is None:
            return False
        try:
            key, value = self._encoder.rows(route.table, begin.file, event)
        except PoisonError:
            return False
        return route.lane.append(key, value)

    async def _send_rows(self, route: Route, begin: Begin, event: RowsEvent) -> None:
        if route.lane is not None:
            await self._outlet.send(Message.of_rows(route.lane, route.table, begin, event))
            return
        for part in spread(event, route.table.primary_key, len(route.lanes)):
            lane = route.lanes[part.partition]
            place = (event.start, event.end, part.ordinals, part.rows)
            await self._outlet.send(Message(lane, route.table, begin, part.action, *place))

    async def _send_statement(self, event: QueryEvent) -> None:
        route, begin = self._routes.get(event.table) or await self._route(event.table), self._opened()
        for lane in route.lanes:
            await self._outlet.send(Message.of_statement(lane, route.table, begin, event))

    async def _send_unread(self, event: OversizedRow) -> None:
        route, begin = self._routes.get(event.table) or await self._route(event.table), self._opened()
        message = Message(route.unknown, route.table, begin, event.action, event.start, event.end, (event.row,))
        await self._outlet.unread(message, event.size)

    async def _end(self, event: Commit) -> None:
        if self._begin is None:
            raise GenerationLost("a transaction ended that did not begin")
        self._reach.ended(self._begin, event)
        self._begin = None
        if self._size >= COMMIT_BYTES:
            await self.commit()

"""The events of one generation become records in Kafka transactions that end where source transactions end."""

import time

from databus import metrics
from databus.errors import GenerationLost, InvalidSettings, PoisonError
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
from databus.progress import Progress
from databus.settings import Settings
from databus_publisher.batches import Lane
from databus_publisher.history import History
from databus_publisher.outputs import Output, open_outputs, plan
from databus_publisher.oversize import Outlet
from databus_publisher.producer import Producer
from databus_publisher.reach import Reach
from databus_publisher.routes import Route, Routes
from databus_publisher.topics import Topics
from databus_publisher.writer import Writer

#: The first end of a source transaction after this many bytes of entries commits, though more may be waiting.
COMMIT_BYTES = 8 * 2**20


class Publication:
    """Writes events by their routes, and knows how far they reach. Raises InvalidSettings for bad rules."""

    def __init__(self, settings: Settings, producer: Producer, topics: Topics, progress: Progress) -> None:
        self._settings = settings
        self._plans = plan(settings)
        self._producer = producer
        self._topics = topics
        self._history = History(producer, settings.name)
        self._outlet = Outlet(settings, producer, topics)
        self._tables: dict[str, Table] = {}
        self._routes: dict[str, tuple[Route, ...]] = {}
        self._finder = Routes(settings, producer, topics, {})  # until the start tells what formats are made of
        self._writer = Writer(self._outlet, ())
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
                    routes, begin = self._routes.get(event.table), self._opened()
                    for route in await self._find(event.table) if routes is None else routes:
                        if route.single is None or not _append(route.single, route, begin, event):
                            await self._writer.rows(route, begin, event)
                case Begin():
                    self._reach.follow(event)
                    self._begin = event
                case Commit():
                    await self._end(event)
                case _:
                    await self._take_note(event)
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
            raise GenerationLost("an event came outside of a transaction")
        return self._begin

    async def _take_note(self, event: Event) -> None:
        """Do what is to be done for what comes seldom."""
        match event:
            case TableDefinition():
                self._tables[event.table.fingerprint] = event.table
                await self._history.table(event.table)
            case SchemaDefinition():
                await self._history.schema(event)
            case QueryEvent():
                before = await self._told_before(event)
                for route in await self._find(event.table):
                    await self._writer.statement(route, self._opened(), event, before.get(route.output))
            case OversizedRow():
                for route in await self._find(event.table):
                    await self._writer.unread(route, self._opened(), event)
            case Heartbeat():
                self._reach.passed(event)
                await self._writer.passed(event.time_us)
            case Start():
                await self._start(event)

    async def _start(self, event: Start) -> None:
        outputs = await open_outputs(self._settings, self._plans, event, self._producer, self._topics)
        self._finder = Routes(self._settings, self._producer, self._topics, outputs)
        self._writer = Writer(self._outlet, outputs.values())
        self._reach.start(event)  # from here on there is something to commit, and a first one has to be whole
        if self.committed.position is None:
            await self.begin()

    async def _told_before(self, event: QueryEvent) -> dict[Output, Table]:
        """Give a statement's table as it was, as outputs told it; rules may fit only what it is now."""
        try:
            return {route.output: route.table for route in await self._find(event.before)} if event.before else {}
        except InvalidSettings:
            return {}

    async def _find(self, fingerprint: str) -> tuple[Route, ...]:
        """Find the routes of a table, once in a generation."""
        if (routes := self._routes.get(fingerprint)) is None:
            table = self._tables.get(fingerprint)
            if table is None:
                raise GenerationLost("an event came before its table's definition")
            routes = self._routes[fingerprint] = await self._finder.find(table)
        return routes

    async def _end(self, event: Commit) -> None:
        begin = self._opened()
        if self._writer.ends:
            await self._writer.end(begin, event)
        self._reach.ended(begin, event)
        self._begin = None
        if self._size >= COMMIT_BYTES:
            await self.commit()


def _append(lane: Lane, route: Route, begin: Begin, event: RowsEvent) -> bool:
    """Take the fast path, which nearly all events go: one record, into a batch that has room for it."""
    try:
        key, value = route.output.format.whole(route.table, begin, event)
    except PoisonError:
        return False
    return lane.append(key, value)

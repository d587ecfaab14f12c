"""Publish one generation (see `databus_core.pipe`): its events become records in Kafka.

Commits happen only between source transactions.
"""

import asyncio
from collections.abc import Iterable
from typing import TypeAlias

from msgspec.structs import replace

from databus_core.errors import GenerationLost, RuleMismatch, SchemaRefused, TopicRefused
from databus_core.events import (
    Action,
    Begin,
    Commit,
    DatabaseEvent,
    Decided,
    End,
    Event,
    Heartbeat,
    OversizedRow,
    Prepared,
    QueryEvent,
    RowsEvent,
    SchemaDefinition,
    Skipped,
    SnapshotEvent,
    SnapshotTruncate,
    Start,
    StateRecord,
    Table,
    TableDefinition,
    decode_events,
)
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import publisher as metrics
from databus_core.progress import Progress
from databus_core.progress_tracker import ProgressTracker
from databus_core.settings import Settings
from databus_core.settings.topic_claims import TopicClaims
from databus_messages.encoder import EventEncoder
from databus_messages.formats.base import MessageSource
from databus_messages.outputs import plan_outputs
from databus_publisher.change_topics import ChangeTopics
from databus_publisher.dead_letters import DeadLetters
from databus_publisher.fast_path import FastPath
from databus_publisher.producer import Producer
from databus_publisher.schema_history import SchemaHistoryWriter
from databus_publisher.sender import Sender
from databus_publisher.table_states import TableStateWriter, Unpublishable
from databus_publisher.topics import Topics
from databus_wire.entry_walk import EntryWalk

log = get_logger(__name__)

#: After this many bytes of entries, commit at the next end of a source transaction, even if more events are waiting.
COMMIT_BYTES = 8 * 2**20
TableEvent: TypeAlias = RowsEvent | QueryEvent | OversizedRow | SnapshotEvent | SnapshotTruncate


class Publication:
    """Publishes the events of one generation. Raises InvalidSettings for rules that are wrong."""

    def __init__(
        self,
        settings: Settings,
        producer: Producer,
        topics: Topics,
        progress: Progress,
        claims: TopicClaims,
        parked: Iterable[tuple[str, str]] = (),
    ) -> None:
        """`parked` has schema and name of the tables that are parked as of the progress."""
        self._settings = settings
        self._claims = claims
        self._plans = plan_outputs(settings.publisher.rules)
        self._producer = producer
        self._topics = topics
        self._change_topics = ChangeTopics(settings.publisher, producer, topics, claims)
        self._history = SchemaHistoryWriter(producer, settings.name)
        self._dead_letters = DeadLetters(producer, topics)
        self._states = TableStateWriter(producer, settings.name, self._dead_letters, parked)
        self._sender = Sender(settings.publisher, producer, topics, self._dead_letters)
        #: number of topics that records were sent to before the last commit
        self._topics_opened = 0
        #: a placeholder without outputs until `Start` arrives
        self._encoder = EventEncoder((), (), MessageSource(settings.name, "mysql", "", 0), {})
        self._tracker = ProgressTracker(progress)
        #: None until then
        self._fast_path: FastPath | None = None
        #: the latest transaction
        self._begin: Begin | None = None
        #: progress of the last commit that has ended
        self.committed = progress
        #: progress of the commit that was started, if `finish_commit` has not waited for it yet
        self._started: Progress | None = None
        #: number of entries that were added
        self._added = 0
        #: number of the first entries of which all events were sent before that commit was started
        self._started_entries = 0
        #: the same for the last commit that has ended
        self._published = 0
        #: whether the reader has stopped at the end of the binlog
        self.ended = False
        #: bytes of entries since the last commit
        self._size = 0
        #: Whether rows of a backfill were sent since the last commit. They are committed when their transaction ends:
        #: the changes before them should not wait for the next chunk, too.
        self._has_chunk = False

    @property
    def committable(self) -> bool:
        """Whether there is something to commit and no source transaction is open."""
        return self._tracker.moved and not self._tracker.in_transaction

    @property
    def committing(self) -> asyncio.Task[None] | None:
        """The commit that was started, until `finish_commit` has waited for it."""
        return self._producer.committing

    @property
    def published(self) -> int:
        """Number of the generation's first entries of which everything is committed."""
        is_idle = not (self.committable or self.in_transaction or self._started)
        return self._added if is_idle else self._published

    @property
    def in_transaction(self) -> bool:
        """Whether a source transaction is open."""
        return self._tracker.in_transaction

    async def add(self, payload: bytes) -> None:
        """Publish the events of an entry, in order.

        The progress moves past an event only after its records were sent: a shutdown commits the progress even if
        sending the next records has failed.
        """
        self._size += len(payload)
        if self._fast_path is None or self._fast_path.is_off:
            await self._add_all(payload)
        else:
            await self._add_some(EntryWalk(payload), self._fast_path)
        self._added += 1
        await self._producer.limit_memory()

    async def _add_some(self, entry: EntryWalk, fast_path: FastPath) -> None:
        """Publish ordinary transactions in compiled code, and all others here."""
        while not entry.done:
            if not self.in_transaction and await fast_path.publish(entry):
                await self._commit_if_due()
            if not entry.done:
                await self._add_all(entry.take_group())

    async def _add_all(self, events: bytes) -> None:
        for event in decode_events(events):
            await self._add(event)

    async def _add(self, event: Event) -> None:
        match event:
            case RowsEvent():
                if event.table in self._encoder.routes and not self._states.reported:  # the fast path
                    try:
                        await self._sender.send(self._encoder.rows(event))
                    except SchemaRefused as refused:
                        await self._park(event, refused)
                else:
                    await self._publish(event)
            case Begin():
                self._begin = event
                self._tracker.begin(event)
                self._encoder.begin(event)
            case Commit():
                if messages := self._encoder.commit(event):
                    await self._sender.send(messages)
                self._sender.skips = False
                self._tracker.commit(event)
                await self._commit_if_due()
                self._states.require_none_reported()
            case Heartbeat():
                await self._sender.send(self._encoder.messages(event))
                self._tracker.skip(event)
            case QueryEvent() | OversizedRow() | SnapshotEvent() | SnapshotTruncate():
                await self._publish(event)
            case _:
                await self._sender.send(self._encoder.messages(await self._prepare(event)))

    async def _commit_if_due(self) -> None:
        """At a transaction's end, start a commit if it must not wait until there is nothing to publish."""
        if self._size >= COMMIT_BYTES or self._has_chunk or self._states.reported:
            await self.start_commit()

    async def _publish(self, event: TableEvent) -> None:
        """Publish an event of one table. A table that cannot be published is parked, unless `doubt.on_doubt` is `stop`.

        DDL on a parked table is published if that is possible; if not, this is known already. DDL that leaves nothing
        to park is only logged.
        """
        self._has_chunk = self._has_chunk or isinstance(event, SnapshotEvent)
        table = self._encoder.table(event.table)
        name, is_ddl = (table.schema, table.name), isinstance(event, QueryEvent)
        if not is_ddl and name in self._states.reported:
            return
        try:
            await self._change_topics.open(self._encoder.unknown_topics(event))
            await self._sender.send(self._encoder.messages(event))
        except (RuleMismatch, TopicRefused, SchemaRefused) as error:
            if is_ddl and name in self._states.parked:
                return
            if isinstance(event, QueryEvent) and _parks_nothing(event) and self._settings.doubt.on_doubt != "stop":
                _log_left_out(event.action, table, error)
            else:
                await self._park(event, error)

    async def _park(self, event: TableEvent, error: Unpublishable) -> None:
        """Park the table of an event because of this error. Raises it if the settings say so."""
        if self._settings.doubt.on_doubt == "stop" or (begin := self._begin) is None:
            raise error
        offset = begin.end if isinstance(event, SnapshotEvent | SnapshotTruncate) else event.start
        await self._states.report(self._encoder.table(event.table), error, begin.file, offset)

    async def _without_refused(self, event: DatabaseEvent) -> DatabaseEvent:
        """Open the topics of DDL on a database. Where Kafka refuses the database's own topic, it is a dead letter.

        Leave out the dropped tables whose topics Kafka refuses: they are gone, so there is nothing to park.
        """
        refusals: dict[str, str] = {}
        for topic in self._encoder.unknown_topics(replace(event, dropped=())):
            try:
                await self._change_topics.open([topic])
            except TopicRefused as refused:
                if self._settings.doubt.on_doubt == "stop":
                    raise
                refusals[topic] = str(refused)
        self._encoder.refuse_databases(refusals)
        dropped: list[str] = []
        for fingerprint in event.dropped:
            try:
                await self._change_topics.open(self._encoder.unknown_topics(replace(event, dropped=(fingerprint,))))
            except TopicRefused as refused:
                _log_left_out(Action.DROP, self._encoder.table(fingerprint), refused)
            else:
                dropped.append(fingerprint)
        return replace(event, dropped=tuple(dropped))

    async def _prepare(self, event: Event) -> Event:
        """Do the work that precedes the messages of a rare event. Return what is published of it."""
        match event:
            case Start():
                await self._start(event)
            case TableDefinition():
                await self._history.write_table(event.table)
                await self._claim_topics(event.table)
            case SchemaDefinition():
                await self._history.write_schema(event)
            case Skipped():
                self._sender.skips = True
            case StateRecord():
                await self._states.write(event)
            case DatabaseEvent():
                return await self._without_refused(event)
            case Prepared():
                self._tracker.prepare(event)
            case Decided():
                self._tracker.decide(event)
            case End():
                if self.in_transaction:
                    raise GenerationLost("the reader ended inside a transaction")
                await self.commit()  # at once: the reader exits when this entry is trimmed
                self.ended = True
        return event

    async def commit(self) -> None:
        """Commit all complete source transactions sent so far, with their progress, unless one is open now."""
        if self.committable:
            await self.start_commit()
        await self.finish_commit()

    async def start_commit(self) -> None:
        """Start to commit all complete source transactions sent so far. What is added meanwhile is not part of it."""
        await self.finish_commit()
        self._size, self._has_chunk = 0, False
        opened = len(self._change_topics.partition_counts) + self._dead_letters.is_open
        if opened != self._topics_opened:
            self._topics_opened = opened
            self._tracker.open_topics()
        progress, self._started_entries = self._tracker.take(), self._added
        await self._producer.start_commit(progress)
        self._started = progress
        if not self.committing:
            await self.finish_commit()

    async def finish_commit(self) -> None:
        """Wait until the commit that was started has ended, if there is one."""
        await self._producer.finish_commit()
        progress, self._started = self._started, None
        if progress is None:
            return
        self._published = self._started_entries
        metrics.KAFKA_COMMITS.inc()
        transactions = progress.transaction - self.committed.transaction
        metrics.TRANSACTIONS.inc(transactions)
        metrics.COMMIT_TRANSACTIONS.observe(transactions)
        self.committed = progress

    async def abandon(self) -> Progress:
        """Discard everything that is not committed. Return the progress at which the next generation begins."""
        await self.finish_commit()
        await self._producer.abort()
        return self.committed

    async def _start(self, event: Start) -> None:
        settings = self._settings
        # Always the first host, not the one that is read: messages depend only on the configuration and the events.
        login = settings.source.login(settings.source.hosts[0])
        source = MessageSource(settings.name, event.flavor, login.host, login.port)
        rules, salt = settings.publisher.rules, settings.publisher.salt.get_secret_value().encode()
        last = self.committed.transaction
        counts = self._change_topics.partition_counts
        self._encoder = EventEncoder(rules, self._plans, source, counts, salt, self._claims, last)
        if topics := self._encoder.own_topics:
            for topic in topics:
                await self._topics.ensure(topic, partitions=1)
                self._producer.set_limit(topic, await self._topics.limit(topic))
            await asyncio.to_thread(self._encoder.open)
        self._fast_path = FastPath(self._encoder, self._producer, self._tracker)
        if self.committed.position is None:
            await self._commit_first_position(event)
        else:
            self._tracker.start(event)

    async def _commit_first_position(self, event: Start) -> None:
        """Commit a new pipeline's position and tables before its first row, so that no restart determines them anew."""
        await self._history.write_head()
        self._tracker.start(event)
        await self.commit()

    async def _claim_topics(self, table: Table) -> None:
        """Claim a new table's topics. A table that does not get them waits, also after a restart."""
        if not table.columns or not self._settings.source.captures(table.schema, table.name):
            return
        if any(found.refusal for found in self._claims.claim(table.schema, table.name)):
            await self._history.write_waiting(table.schema, table.name)


def _parks_nothing(event: QueryEvent) -> bool:
    """Return whether a statement that is not published needs no doubt about its table.

    The table is gone, by DROP or RENAME; or no column has changed, and its next row shows whether it can be published.
    """
    return event.action is Action.DROP or (event.action is Action.ALTER and event.table == event.before)


def _log_left_out(action: Action, table: Table, error: Unpublishable) -> None:
    text = f"{action.name} of {table.full_name} is not published: {error}"
    log.warning(LogEvent.DDL_NOT_PUBLISHED, text, table=table.full_name)

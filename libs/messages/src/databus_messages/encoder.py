"""Turns change events into messages: routed, filtered, distributed over partitions, with frames around transactions.

Frames are the records by which a format marks where a transaction begins and ends. The encoder knows no producer: the
publisher sends the messages to Kafka, the command line prints them. The encoder does no I/O except in the temporary
file of `TransactionBuffer`; formats may call other services, e.g. a schema registry, in `EventEncoder.open` and
`Message.encode`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from databus_core.errors import GenerationLost, RuleMismatch
from databus_core.events import (
    Action,
    Begin,
    Commit,
    DatabaseEvent,
    Event,
    Heartbeat,
    OversizedRow,
    QueryEvent,
    RowsEvent,
    SnapshotEvent,
    SnapshotTruncate,
    Table,
    TableDefinition,
)
from databus_core.settings.rules import Rule
from databus_core.settings.topic_claims import TopicClaims
from databus_messages.formats.base import Change, DdlStatement, MessageSource, TransactionEnd
from databus_messages.message import Frame, Message
from databus_messages.outputs import Output, OutputPlan
from databus_messages.routing.databases import DatabaseRouter
from databus_messages.routing.partitions import Partition
from databus_messages.routing.routes import Route, Router
from databus_messages.sequence import Ordinals
from databus_messages.transaction_buffer import TransactionBuffer
from databus_wire.packed_rows import PackedRows
from databus_wire.rows_writer import RowsWriter


class EventEncoder:
    """Makes the messages of one generation of a pipeline (see `databus_core.events`), or a series of binlog files."""

    def __init__(
        self,
        rules: Sequence[Rule],
        plans: Iterable[OutputPlan],
        source: MessageSource,
        partition_counts: Mapping[str, int],
        salt: bytes = b"",
        claims: TopicClaims | None = None,
        transaction: int = 0,
    ) -> None:
        """Make the outputs. `partition_counts` maps topics to their numbers of partitions.

        It need not be complete from the start: see `unknown_topics`. `claims` has the topics of tables that are known
        already; by default none is. `transaction` is the ordinal of the last transaction before the events.
        """
        self._outputs = [Output(plan, source) for plan in plans]
        self._framed_outputs = [output for output in self._outputs if output.is_framed]
        self._heartbeat_outputs = [output for output in self._outputs if output.format.emits_heartbeats]
        claims = claims or TopicClaims(rules, source.name)
        self._router = Router(rules, self._outputs, claims, salt)
        self._databases = DatabaseRouter(rules, self._outputs, claims, source.name)
        self._partition_counts = partition_counts
        self._tables: dict[str, Table] = {}
        #: routes by the table's fingerprint, for tables that have had an event
        self.routes: dict[str, tuple[Route, ...]] = {}
        self._buffer = TransactionBuffer()
        self._begin: Begin | None = None
        #: ordinal of the latest transaction
        self._transaction = transaction
        #: the latest event with rows of the open transaction
        self._latest: RowsEvent | SnapshotEvent | OversizedRow | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a source transaction is open."""
        return self._begin is not None

    @property
    def buffered_rows(self) -> int:
        """Number of changed rows that are buffered until the end of the open transaction."""
        return sum(output.row_count for output in self._outputs if output.is_buffered)

    @property
    def own_topics(self) -> list[str]:
        """Topics that formats write to besides the tables' topics; each has one partition."""
        return [topic for output in self._outputs for topic in output.format.topics()]

    def open(self) -> None:
        """Let formats prepare their own topics; may block, because formats may call other services."""
        for output in self._outputs:
            output.format.open()

    def refuse_databases(self, refusals: Mapping[str, str]) -> None:
        """Make dead letters of the next statement on a database, for these of its topics: topic → Kafka's refusal."""
        self._databases.refusals = refusals

    def unknown_topics(
        self, event: RowsEvent | QueryEvent | OversizedRow | DatabaseEvent | SnapshotEvent | SnapshotTruncate
    ) -> list[str]:
        """Name the topics that must be added to `partition_counts` before the event can be encoded."""
        topics: list[str] = []
        match event:
            case DatabaseEvent():
                fingerprints = event.dropped
                topics += self._databases.topics(event.schema)
            case QueryEvent(before=before) if before:
                fingerprints = event.table, before
            case _:
                fingerprints = (event.table,)
        unknown_drop = isinstance(event, QueryEvent) and _is_unknown_drop(event)
        for each in fingerprints:
            topics += [found.topic for found in self._router.topics(self.table(each), unknown_drop=unknown_drop)]
        return [topic for topic in topics if topic not in self._partition_counts]

    @property
    def has_fast_path(self) -> bool:
        """Whether `rows_writers` may be used: no heartbeat follows transactions, and all rows have the same order."""
        return not self._heartbeat_outputs and len({output.is_buffered for output in self._outputs}) < 2

    def rows_writers(self, fingerprint: str) -> tuple[RowsWriter, ...] | None:
        """Return a compiled writer for each route of a table in `routes`; None if a route has none.

        Compiled code writes the frame that ends a transaction after the output's own last row, the Python path after
        the last row of all outputs. So that no partition shows it, a table has no writer if other outputs, too, write
        frames, or if its topic is one for frames.
        """
        routes = self.routes[fingerprint]
        framed = [output for output in self._framed_outputs if not output.is_buffered]
        topics = {topic for output in framed for topic in output.format.topics()}
        for route in routes:
            if (len(framed) > 1 and route.output in framed) or route.row_partitions[0].topic in topics:
                return None
        writers = [route.rows_writer() for route in routes]
        return None if None in writers else tuple(writer for writer in writers if writer is not None)

    def pass_transactions(self, last: int) -> None:
        """Take note that the transactions up to this ordinal were encoded by such writers."""
        self._transaction = last

    def messages(self, event: Event) -> Iterable[Message]:
        """Return the messages of the next event, in order. Iterate over them before the next call.

        Raises RuleMismatch if a rule does not fit a table, GenerationLost for an event out of order.
        """
        messages: Iterable[Message] = ()
        match event:
            case RowsEvent():
                messages = self.rows(event)
            case Begin():
                self.begin(event)
            case Commit():
                messages = self.commit(event)
            case TableDefinition():
                self._tables[event.table.fingerprint] = event.table
            case QueryEvent():
                messages = self._ddl(event)
            case DatabaseEvent():
                messages = self._database_ddl(event)
            case SnapshotEvent():
                messages = self._snapshot(event)
            case SnapshotTruncate():
                messages = self._truncation(event)
            case OversizedRow():
                messages = self._unread(event)
            case Heartbeat():
                messages = self._heartbeat(event.time_us)
        return messages

    def begin(self, event: Begin) -> None:
        """Begin a transaction."""
        self._begin, self._transaction, self._latest = event, event.transaction, None

    def rows(self, event: RowsEvent) -> list[Message]:
        """Return the messages of a rows event, without those that are buffered until `commit`."""
        if (begin := self._begin) is None:
            raise _outside_transaction()
        self._latest = event
        messages: list[Message] = []
        for route in self.routes.get(event.table) or self._find(event.table):
            routed = route.messages(begin, event)
            if not route.output.is_framed:
                messages += routed
            elif route.output.is_buffered:
                self._buffer.add(routed, len(event.rows))
            else:
                messages += _framed(routed, begin)
        return messages

    def _ddl(self, event: QueryEvent) -> Iterator[Message]:
        if (begin := self._begin) is None:
            raise _outside_transaction()
        before = self._published_before(event)
        if _is_unknown_drop(event):
            routes = self._router.routes(self.table(event.table), self._partition_counts, unknown_drop=True)
        else:
            routes = (self._find_dropped if event.action is Action.DROP else self._find)(event.table)
        for route in routes:
            statement = DdlStatement(
                table=route.table,
                begin=begin,
                action=event.action,
                query=event.query,
                start=event.start,
                end=event.end,
                before=before.get(route.output),
                next_row=self._next_row(),
            )
            yield Message(route.output, route.ddl_partitions, statement)

    def _database_ddl(self, event: DatabaseEvent) -> Iterator[Message]:
        if (begin := self._begin) is None:
            raise _outside_transaction()

        def message(
            output: Output, partitions: Sequence[Partition], action: Action, table: Table, dropped: Sequence[Table] = ()
        ) -> Message:
            before = table if action is Action.DROP and table.name else None
            origin = event.query, event.start, event.end
            statement = DdlStatement(table, begin, action, *origin, before, dropped, self._next_row())
            return Message(output, partitions, statement)

        routes = [route for fingerprint in event.dropped for route in self._find_dropped(fingerprint)]
        for route in routes:
            if not route.output.format.has_database_statements:
                yield message(route.output, route.ddl_partitions, Action.DROP, route.table)
        database = Table(schema=event.schema, name="", columns=(), charset=event.charset or "")
        for to in self._databases.destinations(event.schema, routes, self._partition_counts):
            yield message(to.output, to.partitions, event.action, database, to.dropped)

    def _published_before(self, event: QueryEvent) -> dict[Output, Table]:
        """Return, by output, the table as it was published before the statement; empty if that is not known."""
        try:
            return {route.output: route.table for route in self._find(event.before)} if event.before else {}
        except RuleMismatch:  # the rules may fit only the table after the statement
            return {}

    def _unread(self, event: OversizedRow) -> Iterator[Message]:
        if (begin := self._begin) is None:
            raise _outside_transaction()
        self._latest = event
        for route in self._find(event.table):
            row, captured = route.output.next_ordinal(event.row), (event.row,)
            head = route.table, begin, event.action, event.start, event.end, row
            change = Change(*head, ordinals=(row,), rows=(), captured=captured)
            yield Message(route.output, (route.unread_partition,), change, event)

    def _snapshot(self, event: SnapshotEvent) -> Iterator[Message]:
        """Yield the rows of a backfill. They are no changes: nothing frames them, and none of them is buffered."""
        if (begin := self._begin) is None:
            raise _outside_transaction()
        self._latest = event
        for route in self._of_output(event):
            yield from route.snapshot(begin, event)

    def _truncation(self, event: SnapshotTruncate) -> Iterator[Message]:
        """Yield TRUNCATE statements as if the table had been emptied in the source."""
        if (begin := self._begin) is None:
            raise _outside_transaction()
        table = self.table(event.table)
        schema, name = (identifier.replace("`", "``") for identifier in (table.schema, table.name))
        query = f"TRUNCATE TABLE `{schema}`.`{name}`".encode()
        for route in self._of_output(event):
            at = begin.end, begin.end
            before, next_row = route.table, self._next_row()
            statement = DdlStatement(route.table, begin, Action.TRUNCATE, query, *at, before, next_row=next_row)
            yield Message(route.output, route.ddl_partitions, statement)

    def _of_output(self, event: SnapshotEvent | SnapshotTruncate) -> list[Route]:
        """Return the routes of the event's table that it is for."""
        return [route for route in self._find(event.table) if event.output in {"", route.output.rule.output}]

    def commit(self, event: Commit) -> Iterable[Message]:
        """End the transaction: return its buffered messages, its end frames and heartbeats."""
        begin, self._begin = self._begin, None
        if begin is None:
            raise _outside_transaction()
        if not self._framed_outputs and not self._heartbeat_outputs:
            return ()
        return self._end(begin, event)

    def _end(self, begin: Begin, event: Commit) -> Iterator[Message]:
        ends = {
            output: TransactionEnd(event.xid, event.end, output.row_count, event.start)
            for output in self._framed_outputs
        }
        buffered = self._buffer.release(begin)
        yield from _framed((message.with_transaction_end(ends[message.output]) for message in buffered), begin)
        for output, end in ends.items():
            if output.partitions and (records := list(output.format.end(begin, end))):
                sequence = Ordinals(begin.transaction, (self._next_row(),))
                yield Message(output, tuple(output.partitions), Frame(records, sequence))
            output.end_transaction()
        yield from self._heartbeat(begin.time_us)

    def _heartbeat(self, time_us: int) -> Iterator[Message]:
        for output in self._heartbeat_outputs:
            if records := list(output.format.heartbeat(time_us)):
                yield Message(output, (), Frame(records, Ordinals(self._transaction + 1, (0,))))

    def _next_row(self) -> int:
        """Return the ordinal of the open transaction's next row among all captured rows."""
        match self._latest:
            case None:
                return 0
            case OversizedRow(row=row):
                return row + 1
            case RowsEvent(row=row, rows=rows, action=Action.UPDATE):
                return row + len(PackedRows(rows)) // 2
            case RowsEvent(row=row, rows=rows) | SnapshotEvent(row=row, rows=rows):
                return row + len(PackedRows(rows))

    def _find(self, fingerprint: str) -> tuple[Route, ...]:
        """Return the routes of a version of a table; they are made with its first event."""
        if (routes := self.routes.get(fingerprint)) is None:
            table = self.table(fingerprint)
            routes = self.routes[fingerprint] = self._router.routes(table, self._partition_counts)
        return routes

    def _find_dropped(self, fingerprint: str) -> tuple[Route, ...]:
        """Return the routes of a dropped table; as for DROP TABLE, without its columns, if a rule does not fit it."""
        try:
            return self._find(fingerprint)
        except RuleMismatch:
            return self._router.routes(replace(self.table(fingerprint), columns=()), self._partition_counts)

    def table(self, fingerprint: str) -> Table:
        """Return a version of a table. Raises GenerationLost if it was not defined."""
        if (table := self._tables.get(fingerprint)) is None:
            raise GenerationLost("an event came before its table's definition")
        return table


def _framed(messages: Iterable[Message], begin: Begin) -> Iterator[Message]:
    """Insert a transaction's begin frame before its first change in each partition."""
    for message in messages:
        if records := message.output.enter(message.partitions[0], begin):
            yield Message(message.output, message.partitions, Frame(records, message.content.sequences))
        yield message


def _is_unknown_drop(event: QueryEvent) -> bool:
    """Return whether the statement drops a table that was not known: perhaps there was none (DROP … IF EXISTS)."""
    return event.action is Action.DROP and not event.before


def _outside_transaction() -> GenerationLost:
    return GenerationLost("an event came outside of a transaction")

"""What happens becomes records, of rows and in the topics of the format's own."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from databus.events import Action, Begin, Table
from databus.names import debezium_heartbeat_topic, debezium_transaction_topic
from databus_messages.formats.base import (
    Change,
    DdlStatement,
    Format,
    KeyValueRecords,
    MessageSource,
    Record,
    SnapshotRows,
    TransactionEnd,
)
from databus_messages.formats.columns import misfit
from databus_messages.formats.debezium import changes, transactions
from databus_messages.formats.debezium.codec import Codec
from databus_messages.formats.debezium.envelope import EnvelopeEncoder, Event
from databus_messages.formats.debezium.options import Options
from databus_messages.formats.debezium.own_topics import OwnTopic
from databus_messages.formats.debezium.rows import RowRecords
from databus_messages.formats.debezium.schemas import INT64, STRING, struct
from databus_messages.formats.debezium.source import SourceEncoder
from databus_messages.formats.debezium.tables import TablePlan
from databus_messages.formats.debezium.transactions import Transaction
from databus_messages.formats.queries import Queries

OptionsT = TypeVar("OptionsT", bound=Options)

_OPERATIONS = {Action.INSERT: "c", Action.UPDATE: "u", Action.DELETE: "d"}
_HEARTBEAT_KEY = struct("io.debezium.connector.common.ServerNameKey", {"serverName": STRING})
_HEARTBEAT = struct("io.debezium.connector.common.Heartbeat", {"ts_ms": INT64})


class Debezium(Format[OptionsT]):
    """Both formats: they differ in how Connect's data becomes bytes."""

    def __init__(self, source: MessageSource, options: OptionsT, codec: Codec) -> None:
        super().__init__(source, options)
        #: ns since the epoch
        self.clock = time.time_ns
        self._prefix = prefix = options.prefix or source.name
        self._codec = codec
        self._source = SourceEncoder(codec, source.flavor, prefix, options.version)
        self._envelope = EnvelopeEncoder(codec)
        self._rows = RowRecords(self._envelope, tombstones=options.tombstones_on_delete)
        self._plans: dict[str, TablePlan] = {}
        value = changes.value_schema(source.flavor, self._source.schema)
        self._schema_changes = OwnTopic(codec, prefix, changes.key_schema(source.flavor), value)
        self._transactions = OwnTopic(codec, debezium_transaction_topic(prefix), transactions.KEY, transactions.VALUE)
        self._heartbeats = OwnTopic(codec, debezium_heartbeat_topic(prefix), _HEARTBEAT_KEY, _HEARTBEAT)
        self._heartbeat_us: int | None = None
        self._transaction: Transaction | None = None
        self._queries = Queries()

    @property
    def emits_frames(self) -> bool:
        """Whether transactions are told of, or statements, each of which ends with its transaction."""
        return self.options.provide_transaction_metadata or self.options.include_query

    @property
    def emits_heartbeats(self) -> bool:
        """Whether heartbeats are wanted."""
        return self.options.heartbeat_interval_ms > 0

    def topics(self) -> Iterable[str]:
        """Name the topics of schema changes, transactions and heartbeats, as far as they are wanted."""
        return [topic.name for topic in self._own_topics()]

    def open(self) -> None:
        """Encode the schemas of these topics."""
        for topic in self._own_topics():
            topic.open()

    def _own_topics(self) -> Iterator[OwnTopic]:
        if self.options.include_schema_changes:
            yield self._schema_changes
        if self.options.provide_transaction_metadata:
            yield self._transactions
        if self.options.heartbeat_interval_ms:
            yield self._heartbeats

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Tell nothing yet: a transaction without changes of rows, as that of a DDL statement, is not told."""
        self._transaction = None
        self._queries.forget()
        return ()

    def change(self, change: Change) -> Iterable[Record]:
        """Make a record of each row, and what a delete or another key needs beside it."""
        query = self._queries.of(change) if self.options.include_query else None
        if _OPERATIONS[change.action] in self.options.skipped_operations:
            return []
        plan = self._plan(change.table)
        event = self._event(plan, change.table, change.begin, change.start, query)
        try:
            if not self.options.provide_transaction_metadata:
                return self._rows.of(plan, event, change, None)
            return self._in_transaction(plan, event, change)
        except (ValueError, LookupError) as error:
            raise misfit(change.table, error) from None  # it could show the value

    def _in_transaction(self, plan: TablePlan, event: Event, change: Change) -> Sequence[Record]:
        """Make the records with their place in the transaction, and tell its begin before the first."""
        began = self._transaction
        transaction = began or Transaction.of(change)
        before = transaction.place(change) - change.first + 1
        blocks = [self._envelope.block(transaction.id, place + 1, before + place) for place in change.ordinals]
        records = self._rows.of(plan, event, change, blocks)
        transaction.count(change, sum(record.value is not None for record in records))
        if began:
            return records
        self._transaction = transaction
        return [self._transactions.record({"id": transaction.id}, transaction.began()), *records]

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Tell what became of the table; a TRUNCATE is a change of the table's rows as well, if it is wanted."""
        table, begin = statement.table, statement.begin
        if statement.action is Action.TRUNCATE and "t" not in self.options.skipped_operations:
            plan = self._plan(table)
            event = self._event(plan, table, begin, statement.start)
            yield Record(None, self._envelope.truncation(event))
        if self.options.include_schema_changes:
            told = {
                "source": self._source.statement(table, begin, statement.start),
                "ts_ms": self.clock() // 1_000_000,
                "databaseName": table.schema,
                "schemaName": None,
                "ddl": statement.sql,
                "tableChanges": changes.table_changes(statement),
            }
            yield self._schema_changes.record({"databaseName": table.schema}, told)

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        """Tell the end of a transaction whose begin was told."""
        if self._transaction:
            yield self._transactions.record({"id": self._transaction.id}, self._transaction.ended())
        self._transaction = None

    def heartbeat(self, time_us: int) -> Iterable[Record]:
        """Tell the time, once an interval."""
        interval, last = self.options.heartbeat_interval_ms * 1000, self._heartbeat_us
        if interval and (last is None or time_us - last >= interval):
            self._heartbeat_us = time_us
            yield self._heartbeats.record({"serverName": self._prefix}, {"ts_ms": time_us // 1000})

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Make a record of each row of a dump, marked by its place in it."""
        plan = self._plan(snapshot.table)
        begin = Begin(0, "", snapshot.position.file, 0, 0, snapshot.time_us)
        done = 0
        for marker, same in groupby(_markers(snapshot)):
            count = len(list(same))
            rows = snapshot.rows[done : done + count]
            event = self._event(plan, snapshot.table, begin, snapshot.position.offset, marker=marker)
            try:
                values, keys = self._envelope.values(plan.images, "r", event, rows, [0] * count), plan.keys(rows)
            except (ValueError, LookupError) as error:
                raise misfit(snapshot.table, error) from None
            yield from KeyValueRecords(keys, values)
            done += count

    def _plan(self, table: Table) -> TablePlan:
        plan = self._plans.get(table.fingerprint)
        if plan is None:
            plan = TablePlan(table, self._prefix, self._source.schema, self.options, self._codec)
            self._plans[table.fingerprint] = plan
        return plan

    def _event(
        self, plan: TablePlan, table: Table, begin: Begin, start: int, query: str | None = None, marker: str = "false"
    ) -> Event:
        """Tell what the values of one event's rows have in common."""
        source = self._source.before_row(table, begin, start, marker), self._source.behind_row(begin.thread_id, query)
        return Event(plan.frame, source, self.clock())


def _markers(snapshot: SnapshotRows) -> Iterator[str]:
    """Give each row's mark; being the last or first of the dump counts more than being that of a table."""
    count = len(snapshot.rows)
    for place in range(count):
        first, last = place == 0, place == count - 1
        if last and snapshot.last:
            yield "last"
        elif first and snapshot.first:
            yield "first"
        elif last and snapshot.last_of_table:
            yield "last_in_data_collection"
        elif first and snapshot.first_of_table:
            yield "first_in_data_collection"
        else:
            yield "true"

"""The common part of `debezium-json` and `debezium-avro`: records of rows, and of the metadata topics."""

import time
from collections.abc import Iterable
from typing import TypeVar

from databus_core.events import Action, Begin, Table
from databus_messages.formats.absent import with_placeholders
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
from databus_messages.formats.columns import invalid_value
from databus_messages.formats.debezium.codec import Codec
from databus_messages.formats.debezium.envelope import EnvelopeEncoder, EventContext
from databus_messages.formats.debezium.metadata_topics import MetadataTopics
from databus_messages.formats.debezium.options import DebeziumOptions
from databus_messages.formats.debezium.rows import RowRecords
from databus_messages.formats.debezium.schema_changes import table_changes
from databus_messages.formats.debezium.source import SourceEncoder, snapshot_markers
from databus_messages.formats.debezium.table_encoder import TableEncoder
from databus_messages.formats.debezium.transactions import TransactionMetadata
from databus_messages.formats.rows_query import RowsQueries
from databus_messages.formats.table_cache import TableCache

OptionsT = TypeVar("OptionsT", bound=DebeziumOptions)

#: in the order of ROW_ACTIONS
OPERATIONS = {Action.INSERT: "c", Action.UPDATE: "u", Action.DELETE: "d"}


class Debezium(Format[OptionsT]):
    """Encodes Debezium's messages. The two formats differ in their codec."""

    omits_unknown_drops = True
    accepts_absent = True

    def __init__(self, source: MessageSource, options: OptionsT, codec: Codec) -> None:
        super().__init__(source, options)
        #: returns the time of encoding in ns since the epoch
        self.clock = time.time_ns
        self._prefix = prefix = options.prefix or source.name
        self._source = SourceEncoder(codec, source.flavor, prefix, options.version)
        self._tables = TableCache(lambda table: TableEncoder(table, prefix, self._source.schema, options, codec))
        self._envelope = EnvelopeEncoder(codec)
        self._rows = RowRecords(self._envelope, tombstones=options.tombstones_on_delete)
        self._metadata = MetadataTopics(codec, source.flavor, prefix, self._source.schema, options)
        self.has_database_statements = options.include_schema_changes
        self.database_topic = self._metadata.schema_changes.name
        self._heartbeat_us: int | None = None
        self._transaction: TransactionMetadata | None = None
        self._queries = RowsQueries()
        self._unavailable = options.unavailable_value_placeholder.encode()

    @property
    def emits_frames(self) -> bool:
        """Whether to call `begin` and `end`, for transaction metadata or to forget the last transaction's statement."""
        return self.options.provide_transaction_metadata or self.options.include_query

    @property
    def emits_heartbeats(self) -> bool:
        """Whether heartbeats are enabled."""
        return self.options.heartbeat_interval_ms > 0

    def topics(self) -> Iterable[str]:
        """Name the enabled metadata topics."""
        return [topic.name for topic in self._metadata.enabled()]

    def open(self) -> None:
        """Encode the schemas of the enabled metadata topics, which may have to be registered."""
        for topic in self._metadata.enabled():
            topic.open()

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Return no record: `change` writes BEGIN, whose id may be the position of the first row change."""
        self._transaction = None
        self._queries.reset()
        return ()

    def change(self, change: Change) -> Iterable[Record]:
        """Encode each row change; deletes and key changes may have several records."""
        query = self._queries.query_of(change) if self.options.include_query else None
        if OPERATIONS[change.action] in self.options.skipped_operations:
            return []
        if change.partial:
            change = with_placeholders(change, self._unavailable)
        table = self._tables[change.table]
        context = self._context(table, change.table, change.begin, change.start, query)
        try:
            if not self.options.provide_transaction_metadata:
                return self._rows.of(table, context, change, None)
            return self._with_transaction(table, context, change)
        except (ValueError, LookupError) as error:
            raise invalid_value(change.table, error) from None  # the cause quotes the value

    def _with_transaction(self, table: TableEncoder, context: EventContext, change: Change) -> Iterable[Record]:
        """Encode the records with their transaction blocks, after BEGIN if they are the first of the transaction.

        A change that is rejected counts for the order and the id of the transaction, but has no BEGIN.
        """
        transaction = self._transaction = self._transaction or TransactionMetadata.of(change)
        offset = transaction.rows_before(change) - change.first + 1
        blocks = [self._envelope.block(transaction.id, ordinal + 1, offset + ordinal) for ordinal in change.ordinals]
        records = self._rows.of(table, context, change, blocks)
        transaction.count(change, sum(record.value is not None for record in records))
        if transaction.has_begin:
            return records
        transaction.has_begin = True
        return [self._metadata.transactions.record({"id": transaction.id}, transaction.begin_message()), *records]

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Encode the schema change, if enabled. A TRUNCATE also has a record in the table's topic, unless skipped."""
        table, begin = statement.table, statement.begin
        if statement.action is Action.TRUNCATE and "t" not in self.options.skipped_operations:
            context = self._context(self._tables[table], table, begin, statement.start)
            yield Record(None, self._envelope.truncation(context))
        if self.options.include_schema_changes:
            value = {
                "source": self._source.of_statement(table, begin, statement.start),
                "ts_ms": self.clock() // 1_000_000,
                "databaseName": table.schema,
                "schemaName": None,
                "ddl": statement.sql,
                "tableChanges": table_changes(statement, self.options),
            }
            yield self._metadata.schema_changes.record({"databaseName": table.schema}, value)

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        """Encode END if the transaction has a BEGIN."""
        if self._transaction and self._transaction.has_begin:
            yield self._metadata.transactions.record({"id": self._transaction.id}, self._transaction.end_message())
        self._transaction = None

    def heartbeat(self, time_us: int) -> Iterable[Record]:
        """Encode a heartbeat, at most one in each interval."""
        interval, last = self.options.heartbeat_interval_ms * 1000, self._heartbeat_us
        if interval and (last is None or time_us - last >= interval):
            self._heartbeat_us = time_us
            yield self._metadata.heartbeats.record({"serverName": self._prefix}, {"ts_ms": time_us // 1000})

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Encode each row of a dump or backfill as a read event, with its snapshot marker."""
        table, rows = self._tables[snapshot.table], snapshot.rows
        begin = Begin(0, "", snapshot.position.file, 0, 0, snapshot.time_us)
        values: list[bytes | None] = []
        try:
            for marker, count in snapshot_markers(snapshot):
                run = rows if count == len(rows) else rows[len(values) : len(values) + count]
                context = self._context(table, snapshot.table, begin, snapshot.position.offset, marker=marker)
                values += self._envelope.values(table.images, "r", context, run, [0] * count)
            return KeyValueRecords(table.keys(rows), values)
        except (ValueError, LookupError) as error:
            raise invalid_value(snapshot.table, error) from None

    def _context(
        self,
        encoder: TableEncoder,
        table: Table,
        begin: Begin,
        start: int,
        query: str | None = None,
        marker: str = "false",
    ) -> EventContext:
        source = self._source.before_row(table, begin, start, marker), self._source.after_row(begin.thread_id, query)
        return EventContext(encoder.value_wrapper, source, self.clock())

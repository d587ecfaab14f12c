"""What happens becomes records: keys, envelopes, tombstones and the topics of the format's own."""

import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from databus.events import Action, Begin, Table
from databus.formats.base import Change, End, Format, Record, Snapshot, Source, Statement
from databus.formats.debezium import changes, transactions
from databus.formats.debezium.codec import Codec
from databus.formats.debezium.envelope import EnvelopeEncoder, EventEnvelope
from databus.formats.debezium.options import Options
from databus.formats.debezium.schemas import INT64, STRING, Schema, struct
from databus.formats.debezium.source import SourceEncoder
from databus.formats.debezium.tables import TablePlan
from databus.formats.debezium.transactions import Transaction
from databus.names import debezium_heartbeat_topic, debezium_transaction_topic

OptionsT = TypeVar("OptionsT", bound=Options)

_OPERATIONS = {Action.INSERT: "c", Action.UPDATE: "u", Action.DELETE: "d"}
_HEARTBEAT_KEY = struct("io.debezium.connector.common.ServerNameKey", {"serverName": STRING})
_HEARTBEAT = struct("io.debezium.connector.common.Heartbeat", {"ts_ms": INT64})
_NEW_KEY, _OLD_KEY = "__debezium.newkey", "__debezium.oldkey"


class Debezium(Format[OptionsT]):
    """Both formats: they differ in how Connect's data becomes bytes."""

    def __init__(self, source: Source, options: OptionsT, codec: Codec) -> None:
        super().__init__(source, options)
        #: ns since the epoch
        self.clock = time.time_ns
        self._prefix = prefix = options.prefix or source.name
        self._codec = codec
        self._source = SourceEncoder(codec, source.flavor, prefix, options.version)
        self._envelope = EnvelopeEncoder(codec)
        self._plans: dict[str, TablePlan] = {}
        value = changes.value_schema(source.flavor, self._source.schema)
        self._schema_changes = _Topic(codec, prefix, changes.key_schema(source.flavor), value)
        self._transactions = _Topic(codec, debezium_transaction_topic(prefix), transactions.KEY, transactions.VALUE)
        self._heartbeats = _Topic(codec, debezium_heartbeat_topic(prefix), _HEARTBEAT_KEY, _HEARTBEAT)
        self._heartbeat_us: int | None = None
        self._transaction: Transaction | None = None
        #: the statement that makes the changes
        self._query: str | None = None

    def topics(self) -> Iterable[str]:
        """Name the topics of schema changes, transactions and heartbeats, as far as they are wanted."""
        if self.options.include_schema_changes:
            yield self._schema_changes.name
        if self.options.provide_transaction_metadata:
            yield self._transactions.name
        if self.options.heartbeat_interval_ms:
            yield self._heartbeats.name

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Tell nothing yet: a transaction without changes of rows, as that of a DDL statement, is not told."""
        self._transaction = self._query = None
        return ()

    def change(self, change: Change) -> Iterable[Record]:
        """Make a record of each row, and what a delete or another key needs beside it."""
        if self.options.include_query and change.query is not None:
            self._query = change.query.decode(errors="replace")
        if _OPERATIONS[change.action] in self.options.skipped_operations:
            return []
        plan = self._plan(change.table)
        envelope = self._event(plan.frame, change.table, change.begin, change.start, self._query)
        if not self.options.provide_transaction_metadata:
            return list(self._rows(plan, envelope, change, [None] * len(change.ordinals)))
        return self._in_transaction(plan, envelope, change)

    def _in_transaction(self, plan: TablePlan, envelope: EventEnvelope, change: Change) -> list[Record]:
        """Make the records with their place in the transaction, and tell its begin before the first."""
        began = self._transaction
        transaction = self._transaction = began or Transaction.of(change)
        before = transaction.place(change) - change.first + 1
        blocks = [self._envelope.block(transaction.id, place + 1, before + place) for place in change.ordinals]
        records = list(self._rows(plan, envelope, change, blocks))
        transaction.count(change, sum(record.value is not None for record in records))
        begin = [] if began else [self._transactions.record({"id": transaction.id}, transaction.began())]
        return begin + records

    def statement(self, statement: Statement) -> Iterable[Record]:
        """Tell what became of the table; a TRUNCATE is a change of the table's rows as well, if it is wanted."""
        table, begin = statement.table, statement.begin
        if statement.action is Action.TRUNCATE and "t" not in self.options.skipped_operations:
            plan = self._plan(table)
            envelope = self._event(plan.frame, table, begin, statement.start, None)
            yield Record(None, envelope.value("t", None, None, 0, None))
        if self.options.include_schema_changes:
            value = {
                "source": self._source.statement(table, begin, statement.start),
                "ts_ms": self.clock() // 1_000_000,
                "databaseName": table.schema,
                "schemaName": None,
                "ddl": statement.query.decode(),
                "tableChanges": changes.table_changes(statement),
            }
            yield self._schema_changes.record({"databaseName": table.schema}, value)

    def end(self, begin: Begin, end: End) -> Iterable[Record]:
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

    def snapshot(self, snapshot: Snapshot) -> Iterable[Record]:
        """Make a record of each row of a dump, marked by its place in it."""
        plan = self._plan(snapshot.table)
        begin = Begin(0, "", snapshot.position.file, 0, 0, snapshot.time_us)
        envelopes: dict[str, EventEnvelope] = {}
        for marker, row in zip(_markers(snapshot), snapshot.rows, strict=True):
            if marker not in envelopes:
                offset = snapshot.position.offset
                envelopes[marker] = self._event(plan.frame, snapshot.table, begin, offset, None, marker)
            values = plan.values(row)
            yield Record(plan.key(values), envelopes[marker].value("r", None, plan.image(values), 0, None))

    def _plan(self, table: Table) -> TablePlan:
        plan = self._plans.get(table.fingerprint)
        if plan is None:
            plan = TablePlan(table, self._prefix, self._source.schema, self.options, self._codec)
            self._plans[table.fingerprint] = plan
        return plan

    def _event(
        self,
        frame: tuple[bytes, bytes],
        table: Table,
        begin: Begin,
        start: int,
        query: str | None,
        marker: str = "false",
    ) -> EventEnvelope:
        before = self._source.before_row(table, begin, start, marker)
        behind = self._source.behind_row(begin.thread_id, query)
        return EventEnvelope(self._envelope, frame, (before, behind), self.clock())

    def _rows(
        self, plan: TablePlan, envelope: EventEnvelope, change: Change, blocks: Iterable[bytes | None]
    ) -> Iterator[Record]:
        numbers = [place - change.first for place in change.ordinals]
        match change.action:
            case Action.INSERT:
                for row, number, block in zip(change.rows, numbers, blocks, strict=True):
                    values = plan.values(row)
                    yield Record(plan.key(values), envelope.value("c", None, plan.image(values), number, block))
            case Action.DELETE:
                for row, number, block in zip(change.rows, numbers, blocks, strict=True):
                    values = plan.values(row)
                    key = plan.key(values)
                    yield Record(key, envelope.value("d", plan.image(values), None, number, block))
                    yield from self._tombstone(key)
            case _:
                images = zip(change.rows[::2], change.rows[1::2], strict=True)
                for (before, after), number, block in zip(images, numbers, blocks, strict=True):
                    yield from self._update(plan, envelope, before, after, number, block)

    def _update(
        self,
        plan: TablePlan,
        envelope: EventEnvelope,
        before: list[bytes | None],
        after: list[bytes | None],
        number: int,
        block: bytes | None,
    ) -> Iterator[Record]:
        old = plan.values(before)
        new = plan.changed(before, old, after)
        old_image, new_image, key = plan.image(old), plan.image(new), plan.key(new)
        if not plan.moved(before, after):
            yield Record(key, envelope.value("u", old_image, new_image, number, block))
            return
        old_key = plan.key(old)
        headers = [(_NEW_KEY, key or b"")], [(_OLD_KEY, old_key or b"")]
        yield Record(old_key, envelope.value("d", old_image, None, number, block), headers[0])
        yield from self._tombstone(old_key)
        yield Record(key, envelope.value("c", None, new_image, number, block), headers[1])

    def _tombstone(self, key: bytes | None) -> Iterator[Record]:
        if key is not None and self.options.tombstones_on_delete:
            yield Record(key, None)


class _Topic:
    """A topic of the format's own."""

    def __init__(self, codec: Codec, name: str, key: Schema, value: Schema) -> None:
        self.name = name
        self._codec, self._schemas = codec, (key, value)

    def record(self, key: dict[str, Any], value: dict[str, Any]) -> Record:
        """Make a record."""
        key_schema, value_schema = self._schemas
        return Record(self._part("key", key_schema, key), self._part("value", value_schema, value), topic=self.name)

    def _part(self, part: str, schema: Schema, data: dict[str, Any]) -> bytes:
        head, tail = self._codec.frame(self.name, part, schema)
        return b"".join((head, self._codec.data(schema)(data), tail))


def _markers(snapshot: Snapshot) -> Iterator[str]:
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

"""The `maxwell-json` format: Maxwell's messages, one for each row.

`gtid` is the transaction's own GTID, not the set executed so far. `thread_id`, if enabled, is left out if the binlog
lacks it; `query`, if enabled, is left out if `RowsQueries` does not find the statement. Where Maxwell uses a random
UUID as a key, this format derives the UUID from the origin of the message (for a row, its transaction and its ordinal
there), so that a message that is encoded again has the same key. `data` has no column that the binlog lacks
(`publisher.publish_partial`), and `old` none that the row before the update lacks. `ts` is the commit time. In a dump
or a backfill, each table's rows are between `bootstrap-start` and `bootstrap-complete`, and `ts` is when the dump was
requested, or when the rows of the backfill were read.
"""

from collections.abc import Iterable, Iterator
from itertools import repeat

from databus_core.events import Action, Begin, Table
from databus_messages.formats.absent import without_absent
from databus_messages.formats.base import (
    Change,
    DdlStatement,
    Format,
    KeyValueRecords,
    MessageSource,
    Record,
    SnapshotRows,
)
from databus_messages.formats.columns import invalid_value
from databus_messages.formats.maxwell_ddl import ddl_messages
from databus_messages.formats.maxwell_keys import uuid
from databus_messages.formats.maxwell_messages import MaxwellTableEncoder
from databus_messages.formats.maxwell_options import MaxwellOptions
from databus_messages.formats.maxwell_values import encode
from databus_messages.formats.rows_query import RowsQueries
from databus_messages.formats.table_cache import TableCache
from databus_wire.rows_writer import RowsWriter


class MaxwellJson(Format[MaxwellOptions]):
    """Encodes Maxwell's messages. Changes are buffered, because the last row of a transaction must have `commit`."""

    options_type = MaxwellOptions
    needs_transaction_end = True
    accepts_absent = True

    def __init__(self, source: MessageSource, options: MaxwellOptions) -> None:
        super().__init__(source, options)
        self._encoders = TableCache(lambda table: MaxwellTableEncoder(table, options))
        self._has_position = (
            options.output_binlog_position
            or options.output_gtid_position
            or options.output_server_id
            or options.output_thread_id
        )
        self.has_database_statements = options.output_ddl
        self.database_topic = options.ddl_kafka_topic
        self._queries = RowsQueries()
        #: how many rows of the dump's current table are encoded
        self._dumped = 0

    def topics(self) -> Iterable[str]:
        """Name the topic of DDL, if DDL is published to a topic of its own."""
        topic = self.options.ddl_kafka_topic
        return [topic] if self.options.output_ddl and topic else []

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Forget the previous transaction's statement."""
        self._queries.reset()
        return ()

    def change(self, change: Change) -> Iterable[Record]:
        """Encode each row change."""
        if change.partial:
            change = without_absent(change)
        try:
            return self._rows(self._encoders[change.table], change)
        except (ValueError, LookupError) as error:
            raise invalid_value(change.table, error) from None  # the cause quotes the value

    def _rows(self, encoder: MaxwellTableEncoder, change: Change) -> KeyValueRecords:
        options, begin = self.options, change.begin
        end = change.transaction_end if options.output_commit_info else None
        statement = self._queries.query_of(change) if options.output_row_query else None
        query = b"" if statement is None else b',"query":%b' % encode(statement)
        xid = b',"xid":%d' % end.xid if end and end.xid is not None else b""
        head, position = encoder.head(change.action, begin.time_us, query, xid), self._position(change)
        last = end.rows - 1 if end else -1
        offsets, nulls = options.output_xoffset and options.output_commit_info, options.output_nulls
        writer, key_encoder, pipeline = encoder.rows, encoder.keys, self.source.name
        is_update = change.action is Action.UPDATE
        rows = change.rows[1::2] if is_update else change.rows
        befores = change.rows[::2] if is_update else repeat(None)
        keys, values = [], []
        for ordinal, row, before in zip(change.ordinals, rows, befores, strict=False):
            commit = b',"commit":true' if ordinal == last else b',"xoffset":%d' % ordinal if offsets else b""
            key = writer.values(encoder.key_columns, row)
            old = writer.changed(before, row, nulls) if before else None
            tail = b',"old":%b}' % old if old else b"}"
            values.append(writer.row(row, nulls, head + commit + position + encoder.data(key), tail))
            keys.append(key_encoder.of_row(key, pipeline, begin.transaction, ordinal))
        return KeyValueRecords(keys, values)

    def rows_writer(self, table: Table) -> RowsWriter | None:
        """Return a compiled writer, unless messages have statements."""
        if self.options.output_row_query:
            return None
        return self._encoders[table].rows_writer(self.options, self.source.name)

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Encode a CREATE, ALTER or DROP, if DDL is enabled."""
        begin, table = statement.begin, statement.table
        origin: dict[str, str] = {}
        if self.options.output_binlog_position:
            origin["position"] = f"{begin.file}:{statement.start}"
        if self.options.output_gtid_position and begin.gtid:
            origin["gtid"] = begin.gtid
        identity = (self.source.name, begin.transaction, statement.start, table.schema, table.name)
        for message in ddl_messages(statement) if self.options.output_ddl else ():
            key = uuid(*identity, message["type"])
            yield Record(key, encode(message | origin), topic=self.options.ddl_kafka_topic)

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Encode the rows as Maxwell's bootstrap messages."""
        encoder, nulls = self._encoders[snapshot.table], self.options.output_nulls
        origin, ordinals = self._origin(snapshot)
        head = encoder.head("bootstrap-insert", snapshot.time_us)
        keys, values = [], []
        try:
            for ordinal, row in zip(ordinals, snapshot.rows, strict=True):
                key = encoder.rows.values(encoder.key_columns, row)
                values.append(encoder.rows.row(row, nulls, head + encoder.data(key), b"}"))
                keys.append(encoder.keys.of_row(key, *origin, ordinal))
        except (ValueError, LookupError) as error:
            raise invalid_value(snapshot.table, error) from None
        rows = KeyValueRecords(keys, values)
        if not snapshot.first_of_table and not snapshot.last_of_table:
            return rows
        return self._between_ends(encoder, snapshot, origin, rows)

    def _origin(self, snapshot: SnapshotRows) -> tuple[tuple[str, int], Iterable[int]]:
        """Return what identifies the dump or the backfill's transaction, and the ordinals of the rows in it."""
        if snapshot.backfill is not None:
            return (self.source.name, snapshot.backfill.transaction), snapshot.backfill.ordinals
        first = 0 if snapshot.first_of_table else self._dumped
        self._dumped = first + len(snapshot.rows)
        return (self.source.name, snapshot.time_us), range(first, self._dumped)

    def _between_ends(
        self, encoder: MaxwellTableEncoder, snapshot: SnapshotRows, origin: tuple[str, int], rows: KeyValueRecords
    ) -> Iterator[Record]:
        """Add `bootstrap-start` or `bootstrap-complete` to the rows."""
        if snapshot.first_of_table:
            nulls = [b"null"] * len(snapshot.table.primary_key)
            head = encoder.head("bootstrap-start", snapshot.time_us) + encoder.data(nulls)
            yield Record(encoder.keys.of_row(nulls, *origin, "start"), head + b"{}}", row=0)
        for index, record in enumerate(rows):
            yield record._replace(row=index)
        if snapshot.last_of_table:
            head = encoder.head("bootstrap-complete", snapshot.time_us) + encoder.data(())
            yield Record(encoder.keys.without_row(*origin, "complete"), head + b"{}}", row=max(0, len(rows) - 1))

    def _position(self, change: Change) -> bytes:
        """Encode the members about the change's origin, each with a comma before it."""
        if not self._has_position:
            return b""
        options, begin = self.options, change.begin
        members: dict[str, object] = {}
        if options.output_binlog_position:
            members["position"] = f"{begin.file}:{change.start}"
        if options.output_gtid_position and begin.gtid:
            members["gtid"] = begin.gtid
        if options.output_server_id:
            members["server_id"] = begin.server_id
        if options.output_thread_id and begin.thread_id:
            members["thread_id"] = begin.thread_id
        return b",%b" % encode(members)[1:-1] if members else b""

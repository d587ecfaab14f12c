"""The `maxwell-json` format: Maxwell's messages, one for each row.

`gtid` is the transaction's own GTID, not the set executed so far. `thread_id`, if enabled, is left out if the binlog
lacks it; `query`, if enabled, is left out if `RowsQueries` does not find the statement. Where Maxwell uses a random
UUID as a key, this format derives the UUID from the origin of the message (for a row, its transaction and its ordinal
there), so that a message that is encoded again has the same key. `ts` is the commit time. In a dump, each table's rows
are between `bootstrap-start` and `bootstrap-complete`, and `ts` is when the dump was requested.
"""

from collections.abc import Iterable
from itertools import repeat

from databus.events import Action, Begin
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


class MaxwellJson(Format[MaxwellOptions]):
    """Encodes Maxwell's messages. Changes are buffered, because the last row of a transaction must have `commit`."""

    options_type = MaxwellOptions
    needs_transaction_end = True

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
        encoder = self._encoders[snapshot.table]
        keys, identity = encoder.keys, (self.source.name, snapshot.time_us)
        if snapshot.first_of_table:
            self._dumped = 0
            nulls = [b"null"] * len(snapshot.table.primary_key)
            head = encoder.head("bootstrap-start", snapshot.time_us) + encoder.data(nulls)
            yield Record(keys.of_row(nulls, *identity, "start"), head + b"{}}")
        head = encoder.head("bootstrap-insert", snapshot.time_us)
        for ordinal, row in enumerate(snapshot.rows, self._dumped):
            try:
                key = encoder.rows.values(encoder.key_columns, row)
                value = encoder.rows.row(row, self.options.output_nulls, head + encoder.data(key), b"}")
            except (ValueError, LookupError) as error:
                raise invalid_value(snapshot.table, error) from None
            yield Record(keys.of_row(key, *identity, ordinal), value)
        self._dumped += len(snapshot.rows)
        if snapshot.last_of_table:
            head = encoder.head("bootstrap-complete", snapshot.time_us) + encoder.data(())
            yield Record(keys.without_row(*identity, "complete"), head + b"{}}")

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

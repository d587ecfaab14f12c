"""The `canal-protobuf` format: canal's entries. Each record is a `Packet` of type MESSAGES, without a key.

Each partition that gets rows of a transaction gets TRANSACTIONBEGIN, ROWDATA…, TRANSACTIONEND, also with MariaDB, for
which canal itself writes no TRANSACTIONBEGIN. A ROWDATA has rows of one binlog event only. A DDL statement is a single
ROWDATA without begin and end. Each of these entries has a packet of its own. Rows of a dump or a backfill are packets
of three entries: TRANSACTIONBEGIN, ROWDATA, TRANSACTIONEND.

Choices that canal leaves open, and fields whose values are not known here:

* `batch_id` is the `id` of `canal-json`, `gtid` its `gtid`, and `executeTime` its `es`.
* TRANSACTIONBEGIN has the offset and length of MySQL's BEGIN, or of MariaDB's GTID event. In a compressed transaction
  all entries have those of the compressed event. In a dump or a backfill, all entries have the rows' position.
* `ddlSchemaName` is the table's schema. Of the `props` in canal's headers, only `curtGtid` (for
  MySQL) and `rowsCount` are set.
* As in canal, an image has no column that the binlog lacks (`publisher.publish_partial`), the others keep their
  `index`, and `updated` is set if only the row before the update lacks the column.
* Logged DML statements (`binlog_rows_query_log_events`) have no entry.

The same events always encode to the same bytes. Values: see `databus_messages.formats.canal_values`. The protocol is
`canal_protocol.proto` in this folder.
"""

from collections.abc import Iterable

from databus_core.events import Action, Begin
from databus_messages.formats import canal_protocol_pb2 as pb
from databus_messages.formats.base import (
    Change,
    DdlStatement,
    Format,
    MessageSource,
    Record,
    SnapshotRows,
    TransactionEnd,
)
from databus_messages.formats.canal import CanalOptions
from databus_messages.formats.canal_ddl import describe
from databus_messages.formats.canal_entries import (
    RowDataEncoder,
    encode_entry,
    new_header,
    packet,
    transaction_begin,
    transaction_end,
)
from databus_messages.formats.table_cache import TableCache


class CanalProtobuf(Format[CanalOptions]):
    """Encodes each entry as a packet of its own, except in dumps and backfills."""

    options_type = CanalOptions
    has_database_statements = True
    accepts_absent = True

    def __init__(self, source: MessageSource, options: CanalOptions) -> None:
        super().__init__(source, options)
        self._encoders = TableCache(lambda table: RowDataEncoder(table, options.time_zone))

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Encode a TRANSACTIONBEGIN entry."""
        header = self._header(begin, begin.start, begin.end)
        return (packet(begin.transaction, transaction_begin(header, begin.thread_id)),)

    def change(self, change: Change) -> Iterable[Record]:
        """Encode the rows as a ROWDATA entry."""
        header = self._header(change.begin, change.start, change.end)
        encoder = self._encoders[change.table]
        rows = encoder.encode(header, change.action, change.rows, change.table_id, partial=change.partial)
        return (packet(change.begin.transaction, rows),)

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Encode the statement as a ROWDATA entry."""
        ddl = describe(statement)
        header = self._header(statement.begin, statement.start, statement.end)
        header.MergeFrom(pb.Header(schemaName=statement.table.schema, tableName=ddl.table, eventType=ddl.type))
        change = pb.RowChange(eventType=ddl.type, isDdl=True, sql=ddl.sql, ddlSchemaName=statement.table.schema)
        return (packet(statement.begin.transaction, encode_entry(header, pb.ROWDATA, change)),)

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        """Encode a TRANSACTIONEND entry."""
        header = self._header(begin, end.start, end.end)
        return (packet(begin.transaction, transaction_end(header, end.xid)),)

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Encode the rows as a transaction of INSERTs, in one packet."""
        if not snapshot.rows:
            return ()
        position = snapshot.position
        header = new_header(position.file, position.offset, snapshot.time_us, position.gtid_set)
        begin, end = transaction_begin(header, thread_id=0), transaction_end(header, xid=None)
        rows = self._encoders[snapshot.table].encode(header, Action.INSERT, snapshot.rows)
        return (packet(snapshot.transaction, begin, rows, end),)

    def _header(self, begin: Begin, start: int, end: int) -> pb.Header:
        header = new_header(begin.file, start, begin.time_us, begin.gtid)
        header.serverId, header.eventLength = begin.server_id, end - start
        if begin.gtid and self.source.flavor == "mysql":
            header.props.add(key="curtGtid", value=begin.gtid)
        return header

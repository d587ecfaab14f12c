"""The `canal-protobuf` format: canal's entries, each in a packet of its own (`Packet` of type MESSAGES, no key).

Every transaction is TRANSACTIONBEGIN, ROWDATA…, TRANSACTIONEND in each partition that gets rows of it, on MariaDB too,
where canal itself gives no begin. A statement is one ROWDATA outside of these, rows of a dump are a packet with all
three. An entry has the rows of one binlog event.

Where canal leaves a choice, or tells what is not known here: `batch_id`, `gtid` and `executeTime` are `id`, `gtid` and
`es` of `canal-json`; TRANSACTIONBEGIN has no offset and TRANSACTIONEND that of the transaction's end; `tableId` is left
out; of a MySQL transaction's props only `curtGtid` is told; `ddlSchemaName` is the table's schema. Statements that made
rows (`binlog_rows_query_log_events`) have no entry. The same events always give the same bytes.

Values: see `databus_messages.formats.canal`. The messages: `canal_protocol.proto`, beside this file.
"""

from collections.abc import Iterable, MutableSequence, Sequence

from databus.events import Action, Begin, Row, Table
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
from databus_messages.formats.canal import EVENT_TYPES, CanalOptions, converter, sql_type
from databus_messages.formats.canal_ddl import describe
from databus_messages.formats.columns import misfit
from databus_messages.formats.row_texts import RowTexts


class CanalProtobuf(Format[CanalOptions]):
    """Makes packets of entries."""

    options_type = CanalOptions

    def __init__(self, source: MessageSource, options: CanalOptions) -> None:
        super().__init__(source, options)
        self._tables: dict[str, _Rows] = {}

    def begin(self, begin: Begin) -> Iterable[Record]:
        """Make a TRANSACTIONBEGIN."""
        return (_packet(begin.transaction, _transaction_begin(self._header(begin), begin.thread_id)),)

    def change(self, change: Change) -> Iterable[Record]:
        """Make a ROWDATA of the rows."""
        header = self._header(change.begin, change.start, change.end)
        entry = self._rows(change.table).entry(header, change.action, change.rows)
        return (_packet(change.begin.transaction, entry),)

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Make the ROWDATA of a statement."""
        ddl = describe(statement)
        header = self._header(statement.begin, statement.start, statement.end)
        header.MergeFrom(pb.Header(schemaName=statement.table.schema, tableName=ddl.table, eventType=ddl.type))
        change = pb.RowChange(eventType=ddl.type, isDdl=True, sql=ddl.sql, ddlSchemaName=statement.table.schema)
        return (_packet(statement.begin.transaction, _entry(header, pb.ROWDATA, change)),)

    def end(self, begin: Begin, end: TransactionEnd) -> Iterable[Record]:
        """Make a TRANSACTIONEND."""
        return (_packet(begin.transaction, _transaction_end(self._header(begin, end.end, end.end), end.xid)),)

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Make a packet with the rows as a transaction of INSERTs."""
        if not snapshot.rows:
            return ()
        position = snapshot.position
        header = _header(position.file, position.offset, snapshot.time_us, position.gtid_set)
        begin, end = _transaction_begin(header, thread_id=0), _transaction_end(header, xid=None)
        return (_packet(0, begin, self._rows(snapshot.table).entry(header, Action.INSERT, snapshot.rows), end),)

    def _header(self, begin: Begin, start: int = 0, end: int = 0) -> pb.Header:
        header = _header(begin.file, start, begin.time_us, begin.gtid)
        header.serverId, header.eventLength = begin.server_id, end - start
        if begin.gtid and self.source.flavor == "mysql":
            header.props.add(key="curtGtid", value=begin.gtid)
        return header

    def _rows(self, table: Table) -> "_Rows":
        rows = self._tables.get(table.fingerprint)
        if rows is None:
            rows = self._tables[table.fingerprint] = _Rows(table, self.options.time_zone)
        return rows


class _Rows:
    """The rows of one table; a column's constant fields are made once."""

    def __init__(self, table: Table, time_zone: str) -> None:
        self._table = table
        self._texts = RowTexts(converter(column, time_zone) for column in table.columns)
        types = map(sql_type, table.columns)
        self._varying = [(place, kind) for place, kind in enumerate(types) if kind.varies]
        self._columns = [
            pb.Column(
                index=place,
                name=column.name,
                isKey=place in table.primary_key,
                isNull=False,
                mysqlType=column.raw_type,
                sqlType=sql_type(column).usual,
            )
            for place, column in enumerate(table.columns)
        ]

    def entry(self, header: pb.Header, action: Action, rows: Sequence[Row]) -> bytes:
        """Make a ROWDATA, and fill in its header. Raises PoisonError for values that do not fit their columns."""
        kind = EVENT_TYPES[action]
        change = pb.RowChange(eventType=kind, isDdl=False)
        try:
            self._fill(change, action, rows)
        except ValueError as error:
            raise misfit(self._table, error) from None  # it could show the value
        header.MergeFrom(pb.Header(schemaName=self._table.schema, tableName=self._table.name, eventType=kind))
        header.props.add(key="rowsCount", value=str(len(change.rowDatas)))
        return _entry(header, pb.ROWDATA, change)

    def _fill(self, change: pb.RowChange, action: Action, rows: Sequence[Row]) -> None:
        match action:
            case Action.UPDATE:
                for before, after in zip(rows[::2], rows[1::2], strict=True):
                    data = change.rowDatas.add()
                    self._image(data.beforeColumns, before, before)
                    self._image(data.afterColumns, after, before)
            case Action.DELETE:
                for row in rows:
                    self._image(change.rowDatas.add().beforeColumns, row, row)
            case _:
                for row in rows:
                    self._image(change.rowDatas.add().afterColumns, row, None)

    def _image(self, columns: "MutableSequence[pb.Column]", row: Row, before: Row | None) -> None:
        """Fill in an image; updated are the cells that are others than before, of an insert all."""
        columns.extend(self._columns)
        for column, text in zip(columns, self._texts.of(row), strict=True):
            if text is None:
                column.isNull = True
            else:
                column.value = text
        for place, kind in self._varying:
            columns[place].sqlType = kind.of(row[place])
        for place, cell in enumerate(row):
            if before is None or before[place] != cell:
                columns[place].updated = True


def _packet(batch: int, *entries: bytes) -> Record:
    body = pb.Messages(batch_id=batch, messages=entries).SerializeToString()
    return Record(None, pb.Packet(version=1, type=pb.MESSAGES, body=body).SerializeToString())


def _header(file: str, start: int, time_us: int, gtid: str) -> pb.Header:
    return pb.Header(
        version=1,
        logfileName=file,
        logfileOffset=start,
        serverenCode="UTF-8",
        executeTime=time_us // 1000,
        sourceType=pb.MYSQL,
        gtid=gtid,
    )


def _transaction_begin(header: pb.Header, thread_id: int) -> bytes:
    return _entry(header, pb.TRANSACTIONBEGIN, pb.TransactionBegin(threadId=thread_id))


def _transaction_end(header: pb.Header, xid: int | None) -> bytes:
    return _entry(header, pb.TRANSACTIONEND, pb.TransactionEnd(transactionId=str(xid or 0)))


def _entry(
    header: pb.Header, kind: pb.EntryType, value: pb.RowChange | pb.TransactionBegin | pb.TransactionEnd
) -> bytes:
    entry = pb.Entry(header=header, entryType=kind, storeValue=value.SerializeToString())
    return bytes(entry.SerializeToString())

"""Encodes canal's entries and packets in protobuf (`canal_protocol.proto`)."""

from collections.abc import Callable, MutableSequence, Sequence
from typing import TypeAlias

from databus_core.events import Action, Row, Table, is_absent
from databus_messages.formats import canal_protocol_pb2 as pb
from databus_messages.formats.base import Record
from databus_messages.formats.canal import EVENT_TYPES, sql_type
from databus_messages.formats.canal_values import RowTexts
from databus_messages.formats.columns import invalid_value

#: adds the columns of a row image to a list; see `RowDataEncoder`
_AddImage: TypeAlias = Callable[["MutableSequence[pb.Column]", Row, Row | None], None]


class RowDataEncoder:
    """Encodes the rows of one table. Fields that all rows share are set once, in columns that each row copies."""

    def __init__(self, table: Table, time_zone: str) -> None:
        self._table = table
        self._texts = RowTexts(table, time_zone)
        types = enumerate(map(sql_type, table.columns))
        self._varying = [(index, kind) for index, kind in types if kind.varies]
        self._columns = [
            pb.Column(
                index=index,
                name=column.name,
                isKey=index in table.primary_key,
                isNull=False,
                mysqlType=column.raw_type,
                sqlType=sql_type(column).default,
            )
            for index, column in enumerate(table.columns)
        ]

    def encode(
        self, header: pb.Header, action: Action, rows: Sequence[Row], table_id: int = 0, *, partial: bool = False
    ) -> bytes:
        """Encode a ROWDATA entry, and complete its header; `partial`: values may be ABSENT.

        Raises PoisonError if a value does not fit its column.
        """
        kind = EVENT_TYPES[action]
        change = pb.RowChange(tableId=table_id, eventType=kind, isDdl=False)
        try:
            self._fill(change, action, rows, self._partial_image if partial else self._image)
        except ValueError as error:
            raise invalid_value(self._table, error) from None  # the cause quotes the value
        header.MergeFrom(pb.Header(schemaName=self._table.schema, tableName=self._table.name, eventType=kind))
        header.props.add(key="rowsCount", value=str(len(change.rowDatas)))
        return encode_entry(header, pb.ROWDATA, change)

    def _fill(self, change: pb.RowChange, action: Action, rows: Sequence[Row], add_image: _AddImage) -> None:
        match action:
            case Action.UPDATE:
                for before, after in zip(rows[::2], rows[1::2], strict=True):
                    data = change.rowDatas.add()
                    add_image(data.beforeColumns, before, before)
                    add_image(data.afterColumns, after, before)
            case Action.DELETE:
                for row in rows:
                    add_image(change.rowDatas.add().beforeColumns, row, row)
            case _:
                for row in rows:
                    add_image(change.rowDatas.add().afterColumns, row, None)

    def _image(self, columns: "MutableSequence[pb.Column]", row: Row, before: Row | None) -> None:
        """Add an image's columns. `updated` is set in columns that differ from `before`; in all if `before` is None."""
        columns.extend(self._columns)
        for column, text in zip(columns, self._texts.of(row), strict=True):
            if text is None:
                column.isNull = True
            else:
                column.value = text
        for index, kind in self._varying:
            columns[index].sqlType = kind.of(row[index])
        for index, cell in enumerate(row):
            if before is None or before[index] != cell:
                columns[index].updated = True

    def _partial_image(self, columns: "MutableSequence[pb.Column]", row: Row, before: Row | None) -> None:
        """Add an image's columns, without those that are ABSENT; `updated` is set where `before` lacks the column."""
        self._image(columns, [None if is_absent(cell) else cell for cell in row], before)
        for index in reversed(range(len(row))):
            if is_absent(row[index]):
                del columns[index]


def packet(batch: int, *entries: bytes) -> Record:
    """Return a record whose value is a packet with these entries; `batch` is its `batch_id`."""
    body = pb.Messages(batch_id=batch, messages=entries).SerializeToString()
    return Record(None, pb.Packet(version=1, type=pb.MESSAGES, body=body).SerializeToString())


def new_header(file: str, offset: int, time_us: int, gtid: str) -> pb.Header:
    """Return a header with the fields that every entry has; its `executeTime` is `time_us`, converted to ms."""
    return pb.Header(
        version=1,
        logfileName=file,
        logfileOffset=offset,
        serverenCode="UTF-8",
        executeTime=time_us // 1000,
        sourceType=pb.MYSQL,
        gtid=gtid,
    )


def transaction_begin(header: pb.Header, thread_id: int) -> bytes:
    """Encode a TRANSACTIONBEGIN entry."""
    return encode_entry(header, pb.TRANSACTIONBEGIN, pb.TransactionBegin(threadId=thread_id))


def transaction_end(header: pb.Header, xid: int | None) -> bytes:
    """Encode a TRANSACTIONEND entry; its transaction id is 0 without an XID, e.g. for a non-transactional engine."""
    return encode_entry(header, pb.TRANSACTIONEND, pb.TransactionEnd(transactionId=str(xid or 0)))


def encode_entry(
    header: pb.Header, kind: pb.EntryType, value: pb.RowChange | pb.TransactionBegin | pb.TransactionEnd
) -> bytes:
    """Encode an entry of any kind."""
    entry = pb.Entry(header=header, entryType=kind, storeValue=value.SerializeToString())
    return bytes(entry.SerializeToString())

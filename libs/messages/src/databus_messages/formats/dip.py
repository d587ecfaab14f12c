"""The `dip` format: CKafka data integration's "official format one" for rows, and canal's flat message for DDL.

Each row is one message, with members in alphabetical order; records have no key. Column values are strings or null,
and images are complete. CKafka does not define the text of values; here it is the canonical text
(docs/reference/values.md), with labels for ENUM and SET, and with bytes (BINARY, BLOB, geometries, VECTOR, MariaDB's
UUID and INET types) in base64.

`BINLOG_POS` is the start of the rows' binlog event, `GLOBAL_ID` the transaction's GTID or null, `TIME` the commit time
in UTC+8. Rows of a dump are inserts (`I`) at the dump's position, and `TIME` is when the dump was requested. Rows of a
backfill are inserts at the position where the stream has them, and `TIME` is when they were read. In DDL messages `es`
and `ts` are both the commit time in ms, `id` is 0, and there is no `gtid`.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from databus_core.events import Action, Column, Row, Table
from databus_messages.formats.base import (
    Change,
    DdlStatement,
    Format,
    KeyValueRecords,
    MessageSource,
    Options,
    Record,
    SnapshotRows,
)
from databus_messages.formats.canal import is_binary
from databus_messages.formats.canal_ddl import ddl_message
from databus_messages.formats.canal_values import json_string
from databus_messages.formats.columns import LABELLED, invalid_value, label_encoder
from databus_messages.formats.table_cache import TableCache
from databus_wire.json_rows import BASE64, RowWriter

_json = msgspec.json.Encoder().encode
_OLD_VALUES = b',"OLD_VALUES":'
_EIGHT_HOURS_S = 8 * 3600
_TYPES = {Action.INSERT: b"I", Action.UPDATE: b"U", Action.DELETE: b"D"}


class _Origin(NamedTuple):
    """The binlog position, transaction and time of rows."""

    file: str
    offset: int
    gtid: str | None
    #: commit time, or when the dump was requested
    time_us: int


class Dip(Format[Options]):
    """Encodes each row as one message, and each DDL statement as one message."""

    has_database_statements = True

    def __init__(self, source: MessageSource, options: Options) -> None:
        super().__init__(source, options)
        self._writers = TableCache(_row_writer)

    def change(self, change: Change) -> Iterable[Record]:
        """Encode each row change."""
        begin = change.begin
        origin = _Origin(begin.file, change.start, begin.gtid or None, begin.time_us)
        return self._records(change.table, change.action, change.rows, origin)

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Encode the statement as one message."""
        return (Record(None, ddl_message(statement)),)

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Encode each row as an insert."""
        position = snapshot.position
        origin = _Origin(position.file, position.offset, None, snapshot.time_us)
        return self._records(snapshot.table, Action.INSERT, snapshot.rows, origin)

    def _records(self, table: Table, action: Action, rows: Sequence[Row], origin: _Origin) -> KeyValueRecords:
        moment = time.strftime("%Y%m%d%H%M%S", time.gmtime(origin.time_us // 1_000_000 + _EIGHT_HOURS_S))
        head = (
            b'{"BINLOG_NAME":%b,"BINLOG_POS":%d,"DATABASE":%b,"EVENT_SERVER_ID":null,"GLOBAL_ID":%b,"GROUP_ID":null,'
            b'"NEW_VALUES":'
        ) % (_json(origin.file), origin.offset, _json(table.schema), _json(origin.gtid))
        tail = b',"TABLE":%b,"TIME":"%b","TYPE":"%b"}' % (_json(table.name), moment.encode(), _TYPES[action])
        try:
            values = list(_messages(self._writers[table], action, rows, head, tail))
        except (ValueError, LookupError) as error:
            raise invalid_value(table, error) from None  # the cause quotes the value
        return KeyValueRecords([None] * len(values), values)


def _messages(writer: RowWriter, action: Action, rows: Sequence[Row], head: bytes, tail: bytes) -> Iterable[bytes]:
    """Encode each change as `head`, the new values, the old values and `tail`."""
    match action:
        case Action.INSERT:
            return (writer.row(row, head=head, tail=_OLD_VALUES + b"null" + tail) for row in rows)
        case Action.DELETE:
            return (writer.row(row, head=head + b"null" + _OLD_VALUES, tail=tail) for row in rows)
    updates = zip(rows[::2], rows[1::2], strict=True)
    return (writer.row(old, head=writer.row(new, head=head, tail=_OLD_VALUES), tail=tail) for old, new in updates)


def _row_writer(table: Table) -> RowWriter:
    return RowWriter([column.name for column in table.columns], map(_converter, table.columns))


def _converter(column: Column) -> int | Callable[[bytes], str]:
    if column.type in LABELLED:
        return label_encoder(column, str, ",".join)
    return BASE64 if is_binary(column) else json_string(column)

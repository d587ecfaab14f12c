"""The `dip` format: "official format one" of CKafka's data integration for rows, and canal's object for DDL.

One message for each row, members in alphabetical order, records without a key. All values are strings, or null; whole
images. Their text is not defined there; ours is what the server prints, with the labels of ENUM and SET, TIMESTAMP in
UTC, and bytes (BINARY, BLOB, geometries, MariaDB's UUID and INET types) in base64.

`BINLOG_POS` is where the rows' binlog event starts, `GLOBAL_ID` the transaction's GTID or null, `TIME` the commit's in
UTC+8. A dump's rows are inserts (`I`) at its position. In a statement's message `es` and `ts` both are the commit's
time in ms; `id` is 0.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from databus.events import Action, Column, Row, Table
from databus.formats.base import Change, Format, Options, Record, Snapshot, Source, Statement
from databus.formats.canal import is_binary
from databus.formats.canal_ddl import flat_message
from databus.formats.columns import LABELLED, labelled, misfit
from databus.formats.row_texts import json_text
from databus_wire.json_rows import BASE64, RowWriter

_json = msgspec.json.Encoder().encode
_OLD = b',"OLD_VALUES":'
_EIGHT_HOURS = 8 * 3600
_TYPES = {Action.INSERT: b"I", Action.UPDATE: b"U", Action.DELETE: b"D"}


class _Place(NamedTuple):
    file: str
    offset: int
    gtid: str | None
    time_us: int


class Dip(Format[Options]):
    """Makes a message of each row."""

    def __init__(self, source: Source, options: Options) -> None:
        super().__init__(source, options)
        self._writers: dict[str, RowWriter] = {}

    def change(self, change: Change) -> Iterable[Record]:
        """Make a message of each row change."""
        begin = change.begin
        place = _Place(begin.file, change.start, begin.gtid or None, begin.time_us)
        return self._records(change.table, change.action, change.rows, place)

    def statement(self, statement: Statement) -> Iterable[Record]:
        """Make the message of a statement."""
        return (Record(None, flat_message(statement)),)

    def snapshot(self, snapshot: Snapshot) -> Iterable[Record]:
        """Make a message of each row, as of an insert."""
        position = snapshot.position
        place = _Place(position.file, position.offset, None, snapshot.time_us)
        return self._records(snapshot.table, Action.INSERT, snapshot.rows, place)

    def _records(self, table: Table, action: Action, rows: Sequence[Row], place: _Place) -> list[Record]:
        moment = time.strftime("%Y%m%d%H%M%S", time.gmtime(place.time_us // 1_000_000 + _EIGHT_HOURS))
        schema, name = _json(table.schema), _json(table.name)
        head = (
            b'{"BINLOG_NAME":%b,"BINLOG_POS":%d,"DATABASE":%b,"EVENT_SERVER_ID":null,"GLOBAL_ID":%b,"GROUP_ID":null,'
            b'"NEW_VALUES":'
        ) % (_json(place.file), place.offset, schema, _json(place.gtid))
        tail = b',"TABLE":%b,"TIME":"%b","TYPE":"%b"}' % (name, moment.encode(), _TYPES[action])
        try:
            return [Record(None, value) for value in self._values(self._writer(table), action, rows, head, tail)]
        except (ValueError, LookupError) as error:
            raise misfit(table, error) from None  # it could show the value

    @staticmethod
    def _values(writer: RowWriter, action: Action, rows: Sequence[Row], head: bytes, tail: bytes) -> Iterable[bytes]:
        """Write new and old values between head and tail."""
        match action:
            case Action.INSERT:
                return (writer.row(row, head=head, tail=_OLD + b"null" + tail) for row in rows)
            case Action.DELETE:
                return (writer.row(row, head=head + b"null" + _OLD, tail=tail) for row in rows)
        pairs = zip(rows[::2], rows[1::2], strict=True)
        return (writer.row(old, head=writer.row(new, head=head, tail=_OLD), tail=tail) for old, new in pairs)

    def _writer(self, table: Table) -> RowWriter:
        writer = self._writers.get(table.fingerprint)
        if writer is None:
            names = [column.name for column in table.columns]
            writer = self._writers[table.fingerprint] = RowWriter(names, map(_convert, table.columns))
        return writer


def _convert(column: Column) -> int | Callable[[bytes], str]:
    if column.type in LABELLED:
        return labelled(column, str, ",".join)
    return BASE64 if is_binary(column) else json_text(column)

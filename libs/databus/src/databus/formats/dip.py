"""The `dip` format: "official format one" of CKafka's data integration for rows, and canal's object for DDL.

One message for each row, members in alphabetical order, records without a key. All values are strings, or null; whole
images. Their text is not defined there; ours is what the server prints, with the labels of ENUM and SET, TIMESTAMP in
UTC, and bytes (BINARY, BLOB, geometries, MariaDB's UUID and INET types) in base64.

`BINLOG_POS` is where the rows' binlog event starts, `GLOBAL_ID` the transaction's GTID or null, `TIME` the commit's in
UTC+8. A dump's rows are inserts (`I`) at its position. In a statement's message `es` and `ts` both are the commit's
time in ms; `id` is 0.
"""

import time
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from databus.events import Action, Column, Row, Table
from databus.formats.base import Change, Format, Options, Record, Snapshot, Source, Statement
from databus.formats.canal import inexpressible, is_binary
from databus.formats.canal_ddl import describe
from databus.formats.columns import label, labels
from databus.formats.row_texts import Converter, RowObjects

_json = msgspec.json.Encoder().encode
_NULL = msgspec.Raw(b"null")
_EIGHT_HOURS = 8 * 3600
_TYPES = {Action.INSERT: "I", Action.UPDATE: "U", Action.DELETE: "D"}


class _Place(NamedTuple):
    file: str
    offset: int
    gtid: str | None
    time_us: int


class _Row(msgspec.Struct, rename=str.upper, gc=False):
    binlog_name: str
    binlog_pos: int
    database: str
    event_server_id: None
    global_id: str | None
    group_id: None
    new_values: msgspec.Raw
    old_values: msgspec.Raw
    table: str
    time: str
    type: str


class _Ddl(msgspec.Struct, rename="camel", kw_only=True):
    data: None = None
    database: str
    es: int
    id: int = 0
    is_ddl: bool = True
    mysql_type: None = None
    old: None = None
    pk_names: None = None
    sql: str
    sql_type: None = None
    table: str
    ts: int
    type: str


class Dip(Format[Options]):
    """Makes a message of each row."""

    def __init__(self, source: Source, options: Options) -> None:
        super().__init__(source, options)
        self._objects: dict[str, RowObjects] = {}

    def change(self, change: Change) -> Iterable[Record]:
        """Make a message of each row change."""
        begin = change.begin
        place = _Place(begin.file, change.start, begin.gtid or None, begin.time_us)
        return self._records(change.table, change.action, change.rows, place)

    def statement(self, statement: Statement) -> Iterable[Record]:
        """Make the message of a statement."""
        es, ddl = statement.begin.time_us // 1000, describe(statement)
        message = _Ddl(database=statement.table.schema, es=es, sql=ddl.sql, table=ddl.table, ts=es, type=ddl.type)
        return (Record(None, _json(message)),)

    def snapshot(self, snapshot: Snapshot) -> Iterable[Record]:
        """Make a message of each row, as of an insert."""
        position = snapshot.position
        place = _Place(position.file, position.offset, None, snapshot.time_us)
        return self._records(snapshot.table, Action.INSERT, snapshot.rows, place)

    def _records(self, table: Table, action: Action, rows: Sequence[Row], place: _Place) -> Iterable[Record]:
        about = place.file, place.offset, table.schema, None, place.gtid, None
        moment = time.strftime("%Y%m%d%H%M%S", time.gmtime(place.time_us // 1_000_000 + _EIGHT_HOURS))
        try:
            images = [msgspec.Raw(image) for image in self._objects_of(table).whole(rows)]
        except (ValueError, IndexError) as error:
            raise inexpressible(table, error) from error
        kind = _TYPES[action]
        return [
            Record(None, _json(_Row(*about, new, old, table.name, moment, kind))) for new, old in _pairs(kind, images)
        ]

    def _objects_of(self, table: Table) -> RowObjects:
        objects = self._objects.get(table.fingerprint)
        if objects is None:
            names = [column.name for column in table.columns]
            objects = RowObjects(names, map(_converter, table.columns))
            self._objects[table.fingerprint] = objects
        return objects


def _pairs(kind: str, images: list[msgspec.Raw]) -> Iterable[tuple[msgspec.Raw, msgspec.Raw]]:
    """Give new and old values."""
    match kind:
        case "I":
            return ((image, _NULL) for image in images)
        case "D":
            return ((_NULL, image) for image in images)
        case _:
            return zip(images[1::2], images[::2], strict=True)


def _converter(column: Column) -> Converter | None:
    if column.type == "enum":
        return partial(label, column)
    if column.type == "set":
        return lambda cell: ",".join(labels(column, cell))
    return _base64 if is_binary(column) else None


def _base64(cell: bytes) -> str:
    return b64encode(cell).decode()

r"""The `databus` format: the format of the original Go server, with exact values.

Key: `{"Pos":{"Name":FILE,"Pos":END},"Action":"DML|DDL"}`. END is the offset at which the rows or query event ends.
The first change after a snapshot has a key above the snapshot's position: a consumer that skips all keys up to this
position does not skip the change. Rows of a backfill have the key of a change that ends where the stream has them,
between two transactions, and the header `databus.snapshot`: `initial` or `incremental`. Value: a `RowsEvent` (`Table`,
`Action`, and `Rows` of cells in base64 or null) or a `QueryEvent` (`Table`, `Action`, and `Query` in base64). A cell
that the binlog lacks (`publisher.publish_partial`) is `false`: consumers that do not know this mark fail, rather than
read NULL. The original, and so `compat: strict`, has no such mark. Members are in the original's order, without white
space; strings are escaped as Go escapes them (`<`, `>`, `&`, U+2028 and U+2029 as `\u….`). With `compat: strict`
values are written as the original writes them, which loses information (`databus_strict`).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Literal, TypeAlias

import msgspec

from databus_core import names
from databus_core.events import ROW_ACTIONS, Action, Column, QueryEvent, Row, Table
from databus_messages.formats.base import (
    Change,
    ClaimCheck,
    DdlStatement,
    Format,
    KeyValueRecords,
    MessageSource,
    Options,
    Record,
    SnapshotRows,
)
from databus_messages.formats.databus_strict import strict_columns
from databus_wire.databus_records import DatabusWriter
from databus_wire.json_base64 import json_base64
from databus_wire.packed_rows import PackedRows
from databus_wire.rows_writer import RowsWriter

_json = msgspec.json.Encoder().encode

# Pattern of COLUMN_TYPE → `Type` in messages. These are the original's rules in the original's order: the first match
# applies. Type 1, a number, is also that of YEAR and of every COLUMN_TYPE with `int` in it, even `point` and
# `enum('mint')`.
_TYPES = (
    (re.compile("int|^year"), 1),
    (re.compile("^(float|double|decimal)"), 2),
    (re.compile("^enum"), 3),
    (re.compile("^set"), 4),
    (re.compile("^datetime"), 6),
    (re.compile("^timestamp"), 7),
    (re.compile("^time"), 9),
    (re.compile("^date$"), 8),
    (re.compile("^bit"), 10),
    (re.compile("^json"), 11),
)
_ROWS = b',"Rows":'
#: `Type` of all other columns
_STRING = 5

#: for each column, the conversion to the original's text; None if that is the canonical text
#: (docs/reference/values.md)
Texts: TypeAlias = tuple[Callable[[bytes], bytes] | None, ...]


class DatabusOptions(Options):
    """Options of the format."""

    #: text of values; `strict`: as the original writes it
    compat: Literal["exact", "strict"] = "exact"


class Encoder:
    """Encodes events. What messages of the same table or binlog file have in common is encoded once."""

    def __init__(self, *, strict: bool = False) -> None:
        self._is_strict = strict
        self._texts: dict[str, Texts] = {}
        self._heads: dict[tuple[str, Action], bytes] = {}
        self._file = ""
        self._position = b""

    def claim_check(self, table: Table, action: Action, check: ClaimCheck) -> bytes:
        """Encode the value that is published in place of a value that is stored elsewhere."""
        return b'%b,"ClaimCheck":%b}' % (self._head(table, action), _json(check._asdict()))

    def rows_value(self, table: Table, action: Action, rows: Sequence[Row]) -> bytes:
        """Encode row images as a record's value, or as a line of a dump's file."""
        if self._is_strict:
            texts = _json(self._strict(table, rows))
        else:
            texts = json_base64(rows.packed) if isinstance(rows, PackedRows) else _json(rows)
        head = self._heads.get((table.fingerprint, action)) or self._head(table, action)
        return b"%b%b%b}" % (head, _ROWS, texts)

    def rows_writer(self, table: Table) -> RowsWriter:
        """Return a compiled writer of `key` and `rows_value`."""
        insert, update, delete = (self._head(table, action) + _ROWS for action in ROW_ACTIONS)
        return DatabusWriter((insert, update, delete), self._key_head)

    def query(self, table: Table, file: str, event: QueryEvent | DdlStatement) -> tuple[bytes, bytes]:
        """Encode key and value of a DDL statement; `table` is the table after the statement."""
        value = b'%b,"Query":%b}' % (self._head(table, event.action), _json(event.query))
        return self.key(file, event.end, b"DDL"), value

    def key(self, file: str, end: int, kind: bytes = b"DML") -> bytes:
        """Encode the key of the event that ends at `end`; `kind` is `DML` or `DDL`."""
        if file != self._file:
            self._file, self._position = file, self._key_head(file)
        return b'%b%d},"Action":"%b"}' % (self._position, end, kind)

    @staticmethod
    def _key_head(file: str) -> bytes:
        return b'{"Pos":{"Name":%b,"Pos":' % _go_json(file)

    def _strict(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        texts = self._texts.get(table.fingerprint)
        if texts is None:
            texts = self._texts[table.fingerprint] = strict_columns(table)
        return [
            [cell if cell is None or text is None else text(cell) for cell, text in zip(row, texts, strict=True)]
            for row in rows
        ]

    def _head(self, table: Table, action: Action) -> bytes:
        head = b'{"Table":%b,"Action":"%b"' % (_go_json(_table(table)), action.encode())
        return self._heads.setdefault((table.fingerprint, action), head)


class Databus(Format[DatabusOptions]):
    """Encodes a change, with all its rows, as one record."""

    options_type: ClassVar[type[Options]] = DatabusOptions
    accepts_packed_rows: ClassVar[bool] = True

    def __init__(self, source: MessageSource, options: DatabusOptions) -> None:
        super().__init__(source, options)
        self._encoder = Encoder(strict=options.compat == "strict")
        self.accepts_absent = options.compat == "exact"

    def change(self, change: Change) -> Iterable[Record]:
        """Make one record of all rows."""
        key = self._encoder.key(change.begin.file, change.end)
        return KeyValueRecords([key], [self._encoder.rows_value(change.table, change.action, change.rows)])

    def rows_writer(self, table: Table) -> RowsWriter | None:
        """Return a compiled writer, unless values are changed."""
        return None if self.options.compat == "strict" else self._encoder.rows_writer(table)

    def statement(self, statement: DdlStatement) -> Iterable[Record]:
        """Make one record."""
        return (Record(*self._encoder.query(statement.table, statement.begin.file, statement)),)

    def claim_check(self, change: Change | DdlStatement, check: ClaimCheck) -> bytes:
        """Encode a value with `ClaimCheck` in place of `Rows` or `Query`."""
        return self._encoder.claim_check(change.table, change.action, check)

    def snapshot(self, snapshot: SnapshotRows) -> Iterable[Record]:
        """Make one record, with the key of a change that ends at the snapshot's position."""
        if not snapshot.rows:
            return ()
        key = self._encoder.key(snapshot.position.file, snapshot.position.offset)
        value = self._encoder.rows_value(snapshot.table, Action.INSERT, snapshot.rows)
        kind = b"incremental" if snapshot.is_incremental else b"initial"
        return (Record(key, value, [(names.SNAPSHOT_HEADER, kind)] if snapshot.backfill else ()),)


def _table(table: Table) -> dict[str, object]:
    return {
        "Schema": table.schema,
        "Name": table.name,
        "Columns": [
            {
                "Name": column.name,
                "Type": _type(column),
                "RawType": column.raw_type,
                "IsAuto": column.auto_increment,
                "EnumValues": column.values if column.type == "enum" else None,
                "SetValues": column.values if column.type == "set" else None,
            }
            for column in table.columns
        ],
        # The original publishes the cardinality in SHOW INDEX, a statistic that may change at any time, or, if that is
        # missing, the column's ordinal in the index. We always publish the ordinal.
        "Indexes": [
            {"Name": index.name, "Columns": index.columns, "Cardinality": list(range(1, len(index.columns) + 1))}
            for index in table.indexes
        ],
        "PKColumns": table.primary_key or None,
    }


def _type(column: Column) -> int:
    return next((number for rule, number in _TYPES if rule.search(column.raw_type.lower())), _STRING)


def _go_json(value: object) -> bytes:
    text = _json(value)
    for character in "<>&\u2028\u2029":
        text = text.replace(character.encode(), b"\\u%04x" % ord(character))
    return text

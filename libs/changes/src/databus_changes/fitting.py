"""A table map that names no columns, completed from the table that is known, if the two fit."""

import re

import msgspec

from databus.errors import START_AFRESH, SchemaMismatch
from databus.events import Column, Table
from databus_binlog import ColumnMap, TableMap
from databus_binlog.table_map import NOT_LOGGED, FieldType
from databus_changes.catalog import charset_name
from databus_changes.declared import described_by

#: Types that one binlog type stands for, by the name we give it: MariaDB's JSON is a LONGTEXT, its UUID a BINARY(16).
_ALIASES = {"json": "longtext", "uuid": "binary", "inet6": "binary", "inet4": "binary"}
_SPATIAL = {"point", "linestring", "polygon", "geometrycollection", "geomcollection"}
_SPATIAL |= {f"multi{kind}" for kind in ("point", "linestring", "polygon")}
#: Types whose length, precision or fraction both sides spell the same way.
_SIZED = {"decimal", "bit", "time", "datetime", "timestamp", "char", "varchar", "varbinary"}
_SIZES = re.compile(r"\([\d,]+\)")
_CHARACTER = {
    FieldType.STRING, FieldType.VAR_STRING, FieldType.VARCHAR, FieldType.VARCHAR_COMPRESSED,
    FieldType.BLOB, FieldType.BLOB_COMPRESSED, FieldType.ENUM, FieldType.SET,
}  # fmt: skip


def same_columns(listed: Table, logged: Table) -> bool:
    """Say whether information_schema, or what was made of it, describes the very columns of the binlog."""
    return listed.primary_key == logged.primary_key and [_shape(c) for c in listed.columns] == [
        _shape(c) for c in logged.columns
    ]


def completed(table: Table, table_map: TableMap) -> TableMap:
    """Give a table map the names, signs, character sets, labels and the key of a table.

    Raises SchemaMismatch unless the count of columns and all that is logged of each are the table's.
    """
    hidden = len(table_map.columns) - len(table.columns)
    if hidden < 0 or not all(map(_may_be_hash, table_map.columns[len(table.columns) :])) or hidden > len(table.indexes):
        raise _mismatch(table, f"it has {len(table_map.columns)} columns, not {len(table.columns)}")
    columns = tuple(map(_completed, table.columns, table_map.columns))
    complete = msgspec.structs.replace(
        table_map, columns=columns, primary_key=table.primary_key, has_names=True, hidden=table_map.hidden + hidden
    )
    described = described_by(complete).columns
    for known, logged, column_map in zip(table.columns, described, columns, strict=True):
        if _shape(_as_logged(known, logged)) != _shape(logged) or not _fits_labels(known, column_map):
            raise _mismatch(table, f"column {known.name} is {logged.raw_type}, not {known.raw_type}")
    return complete


def _mismatch(table: Table, reason: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"rows of {table.schema}.{table.name} do not fit what is known of the table ({reason}), and the binlog does "
        f"not name its columns: set binlog_row_metadata=FULL on the server; {START_AFRESH}"
    )


def _may_be_hash(column: ColumnMap) -> bool:
    """Recognise what MariaDB puts behind the columns for a unique index over a TEXT or BLOB."""
    return column.type == FieldType.LONGLONG and column.nullable and column.unsigned is not False


def _completed(known: Column, logged: ColumnMap) -> ColumnMap:
    charset = logged.charset
    if charset is None and logged.type in _CHARACTER:
        charset = known.charset or "binary"
    return msgspec.structs.replace(
        logged,
        name=known.name,
        unsigned=known.unsigned if logged.unsigned is None else logged.unsigned,
        charset=charset,
        values=known.values or None,
        visible=not known.invisible,
        metadata=_fraction(known) if logged.metadata == NOT_LOGGED else logged.metadata,
    )


def _fraction(known: Column) -> int:
    """Give the digits of a second, which MariaDB does not log of its old types."""
    sizes = _SIZES.search(known.raw_type)
    return int(sizes[0][1:-1]) if sizes and sizes[0][1:-1].isdigit() else 0


def _as_logged(known: Column, logged: Column) -> Column:
    """Leave aside whether a TIMESTAMP may be NULL, which depends on a session's explicit_defaults_for_timestamp."""
    return msgspec.structs.replace(known, nullable=logged.nullable) if known.type == "timestamp" else known


def _fits_labels(known: Column, logged: ColumnMap) -> bool:
    if logged.type == FieldType.ENUM:
        return logged.metadata == (1 if len(known.values) < 2**8 else 2)
    if logged.type == FieldType.SET:
        return logged.metadata == next(size for size in (1, 2, 3, 4, 8) if len(known.values) <= 8 * size)
    return True


def _shape(column: Column) -> tuple[object, ...]:
    """Give what information_schema and the binlog must agree on for a column to be the same."""
    kind = "geometry" if column.type in _SPATIAL else _ALIASES.get(column.type, column.type)
    sizes = _SIZES.search(column.raw_type) if kind in _SIZED else None
    charset = "" if column.type in _ALIASES else charset_name(column.charset)
    return column.name, kind, sizes and sizes[0], charset, column.nullable, column.unsigned, column.values

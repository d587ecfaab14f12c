"""Turns TABLE_MAP metadata into tables, with column types as MySQL 8 spells them."""

import msgspec

from databus_binlog import ColumnMap, TableMap
from databus_binlog.table_map import FieldType as T
from databus_changes.charsets import character_width
from databus_core.events import Column, Index, Table

_PLAIN = {
    T.TINY: "tinyint", T.SHORT: "smallint", T.INT24: "mediumint", T.LONG: "int", T.LONGLONG: "bigint",
    T.FLOAT: "float", T.DOUBLE: "double", T.NEWDECIMAL: "decimal", T.YEAR: "year", T.BIT: "bit",
    T.DATE: "date", T.NEWDATE: "date", T.TIME: "time", T.TIME2: "time", T.DATETIME: "datetime", T.DATETIME2: "datetime",
    T.TIMESTAMP: "timestamp", T.TIMESTAMP2: "timestamp",
    T.ENUM: "enum", T.SET: "set", T.JSON: "json", T.GEOMETRY: "geometry", T.VECTOR: "vector",
}  # fmt: skip
#: field type → column type without and with a character set
_STRINGS = {
    T.VARCHAR: ("varbinary", "varchar"),
    T.VAR_STRING: ("varbinary", "varchar"),
    T.VARCHAR_COMPRESSED: ("varbinary", "varchar"),
    T.STRING: ("binary", "char"),
}
#: number of bytes that hold a value's length → column type without and with a character set
_BLOBS = {
    1: ("tinyblob", "tinytext"),
    2: ("blob", "text"),
    3: ("mediumblob", "mediumtext"),
    4: ("longblob", "longtext"),
}
_FRACTIONAL = {T.TIME, T.DATETIME, T.TIMESTAMP, T.TIME2, T.DATETIME2, T.TIMESTAMP2}
_INTEGERS = {T.TINY, T.SHORT, T.INT24, T.LONG, T.LONGLONG}
_CHARACTER = _STRINGS.keys() | {T.BLOB, T.BLOB_COMPRESSED}


def table_of(table_map: TableMap) -> Table:
    """Return the table that a table map describes by itself. Its key is assumed to be the primary key."""
    columns = tuple(_column(column) for column in table_map.columns)
    key = table_map.key
    is_primary = table_map.key_has_prefix and not any(_is_tiny_blob(table_map.columns[index]) for index in key)
    return Table(
        schema=table_map.schema,
        name=table_map.name,
        columns=columns,
        primary_key=key,
        key_assumed=bool(key) and not is_primary,
        indexes=(Index("PRIMARY", tuple(columns[index].name for index in key), unique=True),) if key else (),
    )


def readable(table_map: TableMap) -> TableMap:
    """Complete a table map with `assume_metadata`, so that its rows can be decoded although no known table fits."""
    return msgspec.structs.replace(table_map, columns=tuple(map(assume_metadata, table_map.columns)))


def assume_metadata(column: ColumnMap) -> ColumnMap:
    """Fill in what the decoder needs to know about a column, if the server does not log it.

    Integers are treated as signed. Strings are treated as UTF-8: their bytes stay as they are logged. The fraction
    digits of MariaDB's old temporal types stay missing, so columns of these types cannot be decoded.
    """
    return msgspec.structs.replace(
        column,
        unsigned=False if column.unsigned is None and column.type in _INTEGERS else column.unsigned,
        charset="utf8mb4" if column.charset is None and column.type in _CHARACTER else column.charset,
    )


def _is_tiny_blob(column: ColumnMap) -> bool:
    """Return whether a unique index may contain a prefix of the column that is as long as the column."""
    return column.type == T.BLOB and column.metadata == 1


def _column(column: ColumnMap) -> Column:
    name, raw_type = _declared_type(column)
    return Column(
        name=column.name,
        type=name,
        raw_type=raw_type,
        nullable=column.nullable,
        unsigned=_is_unsigned(column),
        charset=column.charset if column.charset not in {None, "binary"} else "",
        values=column.values or (),
        invisible=not column.visible,
    )


def _declared_type(column: ColumnMap) -> tuple[str, str]:
    """Return DATA_TYPE and COLUMN_TYPE of a column, as far as they are logged."""
    code, is_text = T(column.type), column.charset not in {None, "binary"}
    if code in {T.BLOB, T.BLOB_COMPRESSED}:
        name = _BLOBS[column.metadata][is_text]
        return name, name
    if code in _STRINGS:
        name = _STRINGS[code][is_text]
        size = column.metadata - (code == T.VARCHAR_COMPRESSED)  # without its one byte of header
        return name, f"{name}({size // character_width(column.charset or '')})"
    name = _PLAIN[code]
    return name, name + _arguments(code, column) + (" unsigned" if _is_unsigned(column) else "")


def _is_unsigned(column: ColumnMap) -> bool:
    """Return whether the type is unsigned. MariaDB also marks YEAR as unsigned, which has no meaning."""
    return bool(column.unsigned) and column.type != T.YEAR


def _arguments(code: T, column: ColumnMap) -> str:
    if code == T.NEWDECIMAL:
        return f"({column.metadata >> 8},{column.metadata & 0xFF})"
    if code in _FRACTIONAL:
        return f"({column.metadata})" if column.metadata > 0 else ""
    if code == T.BIT:
        return f"({column.metadata})"
    if code in {T.ENUM, T.SET} and column.values:
        return "(" + ",".join("'" + label.replace("'", "''") + "'" for label in column.values) + ")"
    return ""

"""The table that the binlog itself describes, with the types of its columns as MySQL 8 spells them."""

from databus.events import Column, Index, Table
from databus_binlog import ColumnMap, TableMap
from databus_binlog.table_map import FieldType as T

_PLAIN = {
    T.TINY: "tinyint", T.SHORT: "smallint", T.INT24: "mediumint", T.LONG: "int", T.LONGLONG: "bigint",
    T.FLOAT: "float", T.DOUBLE: "double", T.NEWDECIMAL: "decimal", T.YEAR: "year", T.BIT: "bit",
    T.DATE: "date", T.NEWDATE: "date", T.TIME: "time", T.TIME2: "time", T.DATETIME: "datetime", T.DATETIME2: "datetime",
    T.TIMESTAMP: "timestamp", T.TIMESTAMP2: "timestamp",
    T.ENUM: "enum", T.SET: "set", T.JSON: "json", T.GEOMETRY: "geometry", T.VECTOR: "vector",
}  # fmt: skip
#: without and with a character set
_STRINGS = {
    T.VARCHAR: ("varbinary", "varchar"),
    T.VAR_STRING: ("varbinary", "varchar"),
    T.VARCHAR_COMPRESSED: ("varbinary", "varchar"),
    T.STRING: ("binary", "char"),
}
#: by the bytes of their length
_BLOBS = {
    1: ("tinyblob", "tinytext"),
    2: ("blob", "text"),
    3: ("mediumblob", "mediumtext"),
    4: ("longblob", "longtext"),
}
_FRACTIONAL = {T.TIME, T.DATETIME, T.TIMESTAMP, T.TIME2, T.DATETIME2, T.TIMESTAMP2}
#: bytes a character may take, where it is not one
_WIDTH = {
    "utf8mb4": 4, "utf8mb3": 3, "utf8": 3, "utf16": 4, "utf16le": 4, "utf32": 4, "ucs2": 2, "gbk": 2, "gb2312": 2,
    "gb18030": 4, "big5": 2, "sjis": 2, "cp932": 2, "euckr": 2, "ujis": 3, "eucjpms": 3,
}  # fmt: skip


def character_width(charset: str) -> int:
    """Give the bytes that a character of a set takes at most."""
    return _WIDTH.get(charset, 1)


def described_by(table_map: TableMap) -> Table:
    """Describe a table from its table map alone."""
    columns = tuple(_column(column) for column in table_map.columns)
    key = table_map.primary_key
    indexes = (Index("PRIMARY", tuple(columns[place].name for place in key)),) if key else ()
    return Table(schema=table_map.schema, name=table_map.name, columns=columns, primary_key=key, indexes=indexes)


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
    """Give DATA_TYPE and COLUMN_TYPE of a column, as far as the binlog tells them."""
    code, is_text = T(column.type), column.charset not in {None, "binary"}
    if code in {T.BLOB, T.BLOB_COMPRESSED}:
        name = _BLOBS[column.metadata][is_text]
        return name, name
    if code in _STRINGS:
        name = _STRINGS[code][is_text]
        size = column.metadata - (code == T.VARCHAR_COMPRESSED)  # a byte says how it is compressed
        return name, f"{name}({size // character_width(column.charset or '')})"
    name = _PLAIN[code]
    return name, name + _arguments(code, column) + (" unsigned" if _is_unsigned(column) else "")


def _is_unsigned(column: ColumnMap) -> bool:
    """Say whether the type is unsigned; MariaDB says it of YEAR too, where it means nothing."""
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

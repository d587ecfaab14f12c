"""The columns of a replica in PostgreSQL and SQLite: their types, and the values that they get."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    DateTime,
    Double,
    Float,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    Uuid,
)
from sqlalchemy.types import TypeEngine

from databus.sql_exact import ExactNumeric, ExactTime, JsonText
from databus.values import Converter, converter, labels_of
from databus_core import events
from databus_core.definitions import sized_type

_TYPES: dict[str, Callable[[], TypeEngine[Any]]] = {
    **dict.fromkeys(("tinyint", "smallint", "year"), SmallInteger),
    **dict.fromkeys(("mediumint", "int"), Integer),
    "bigint": BigInteger,
    "float": Float,
    "double": Double,
    "date": Date,
    "datetime": DateTime,
    "timestamp": lambda: DateTime(timezone=True),
    "time": ExactTime,
    "json": JsonText,
    "uuid": Uuid,
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext", "enum", "set", "inet4", "inet6"), Text),
}
#: unsigned type → the next larger type
_UNSIGNED: dict[str, Callable[[], TypeEngine[Any]]] = {
    "tinyint": SmallInteger,
    "smallint": Integer,
    "mediumint": Integer,
    "int": BigInteger,
    "bigint": lambda: ExactNumeric(20, 0),
}


def column_of(column: events.Column, *, in_key: bool) -> Column[Any]:
    """Return a column of the replica; without the source's defaults, and only those of the key are NOT NULL."""
    return Column(column.name, _type_of(column), primary_key=in_key, autoincrement=False)


def _type_of(column: events.Column) -> TypeEngine[Any]:
    kind, size, scale = sized_type(column)
    if kind == "decimal":
        return ExactNumeric(size or 10, scale)
    if kind == "bit":
        return ExactNumeric(20, 0) if size == 64 else BigInteger()
    if kind in ("char", "varchar"):
        return String(size or 1)  # PostgreSQL has no VARCHAR(0)
    if kind in _UNSIGNED and "unsigned" in column.raw_type.lower():
        return _UNSIGNED[kind]()
    return _TYPES.get(kind, LargeBinary)()


class NotStorable(ValueError):
    """A value that another database does not have; the text says why, without the value."""


def reader(column: events.Column) -> Callable[[bytes], Any]:
    """Return the function that turns a text of the source into what the replica's column gets."""
    kind = sized_type(column)[0]
    if labels := labels_of(column):
        return lambda text: labels(int(text))
    if kind in ("inet4", "inet6"):
        convert = converter(column)
        return lambda text: str(convert(text))
    if kind in ("json", "time"):
        return bytes.decode
    if kind in ("date", "datetime", "timestamp"):
        return partial(_moment, converter(column))
    return converter(column) if kind in _TYPES or kind in ("decimal", "bit", "char", "varchar") else bytes


def _moment(convert: Converter, text: bytes) -> Any:
    value = convert(text)
    if value == text.decode():  # it stays text, as 0000-00-00 does
        raise NotStorable("no other database has this date")
    return value


def without_zero_bytes(column: events.Column) -> Callable[[bytes], Any]:
    """Return the reader of a column in PostgreSQL, whose texts have no zero bytes."""
    read = reader(column)
    return partial(_without_zero, read) if isinstance(_type_of(column), String) else read


def _without_zero(read: Callable[[bytes], str], text: bytes) -> str:
    value = read(text)
    if "\0" in value:
        raise NotStorable("PostgreSQL has no text with a zero byte")
    return value

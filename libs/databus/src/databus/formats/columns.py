"""What formats ask of a column and of a value's canonical text (docs/reference/values.md)."""

import re
import socket
from collections.abc import Callable, Mapping
from uuid import UUID

from databus.events import Column

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
FLOATS = frozenset({"float", "double"})
BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
TEXT = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
#: MariaDB's types whose values are bytes to the binlog, and how the server prints them
PACKED: Mapping[str, Callable[[bytes], str]] = {
    "uuid": lambda value: str(UUID(bytes=value)),
    "inet4": lambda value: socket.inet_ntop(socket.AF_INET, value),
    "inet6": lambda value: socket.inet_ntop(socket.AF_INET6, value),
}
SPATIAL = frozenset(
    {
        *("geometry", "point", "linestring", "polygon", "geometrycollection", "geomcollection"),
        *("multipoint", "multilinestring", "multipolygon"),
    }
)

_ARGUMENTS = re.compile(r"\w+\s*\(([\d,\s]+)\)")


def arguments(column: Column) -> tuple[int, ...]:
    """Give the numbers behind the name of a column's type: `(18, 4)` for `decimal(18,4)`."""
    found = _ARGUMENTS.match(column.raw_type)
    return tuple(map(int, found[1].split(","))) if found else ()


def label(column: Column, text: bytes) -> str:
    """Give the label of an ENUM's value; the one of index 0, which stands for a value that was refused, is empty."""
    index = int(text)
    return column.values[index - 1] if index else ""


def labels(column: Column, text: bytes) -> list[str]:
    """Give the labels of a SET's value, in the order of the column's."""
    mask = int(text)
    return [name for place, name in enumerate(column.values) if mask >> place & 1]

"""What formats ask of a column and of a value's canonical text (docs/reference/values.md)."""

import re
import socket
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar
from uuid import UUID

from databus.errors import PoisonError
from databus.events import Column, Table

Written = TypeVar("Written")

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
FLOATS = frozenset({"float", "double"})
BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
TEXT = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
LABELLED = frozenset({"enum", "set"})
TEMPORAL = frozenset({"date", "time", "datetime", "timestamp"})
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

#: SETs whose labels are kept ready
_KNOWN_SETS = 1024
_ARGUMENTS = re.compile(r"\w+\s*\(([\d,\s]+)\)")


def arguments(column: Column) -> tuple[int, ...]:
    """Give the numbers behind the name of a column's type: `(18, 4)` for `decimal(18,4)`."""
    found = _ARGUMENTS.match(column.raw_type)
    return tuple(map(int, found[1].split(","))) if found else ()


def fraction_digits(column: Column) -> int:
    """Give the digits of a second's fraction that a TIME, DATETIME or TIMESTAMP has."""
    return next(iter(arguments(column)), 0)


def label(column: Column, text: bytes) -> str:
    """Give the label of an ENUM's value; the one of index 0, which stands for a value that was refused, is empty."""
    index = int(text)
    return column.values[index - 1] if index else ""


def labels(column: Column, text: bytes) -> list[str]:
    """Give the labels of a SET's value, in the order of the column's. Raises LookupError for a bit without one."""
    mask = int(text)
    if mask >> len(column.values):
        raise LookupError("a SET has a value without a label")
    return [name for place, name in enumerate(column.values) if mask >> place & 1]


def labelled(
    column: Column, one: Callable[[str], Written], several: Callable[[list[str]], Written]
) -> Callable[[bytes], Written]:
    """Give what writes an ENUM's label or a SET's labels, and remembers it. That raises LookupError or ValueError."""
    if column.type == "set":
        return lru_cache(_KNOWN_SETS)(lambda text: several(labels(column, text)))
    numbers = [b"%d" % index for index in range(len(column.values) + 1)]
    return {number: one(label(column, number)) for number in numbers}.__getitem__


def misfit(table: Table, error: Exception) -> PoisonError:
    """Make the error for rows that are not what their table tells. It does not quote them: raise it from None."""
    return PoisonError(
        f"a row of {table.schema}.{table.name} has a value that does not fit its column ({type(error).__name__})"
    )

"""Groups of column types, and helpers to interpret a value's canonical text (docs/reference/values.md)."""

import re
import socket
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar
from uuid import UUID

from databus_core.errors import PoisonError
from databus_core.events import Column, Table

Encoded = TypeVar("Encoded")

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
FLOATS = frozenset({"float", "double"})
BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
TEXT = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
LABELLED = frozenset({"enum", "set"})
TEMPORAL = frozenset({"date", "time", "datetime", "timestamp"})


def _inet6(value: bytes) -> str:
    """Print an IPv6 address as MariaDB does, which also shortens a single group of zeros."""
    text = socket.inet_ntop(socket.AF_INET6, value)
    before, zero, after = f":{text}:".partition(":0:")
    return text if "::" in text or not zero else f"{before[1:]}::{after[:-1]}"


#: MariaDB's types UUID and INET, whose canonical text is raw bytes → the function that prints them as the server does
UUID_AND_INET: Mapping[str, Callable[[bytes], str]] = {
    "uuid": lambda value: str(UUID(bytes=value)),
    "inet4": lambda value: socket.inet_ntop(socket.AF_INET, value),
    "inet6": _inet6,
}
SPATIAL = frozenset({
    "geometry", "point", "linestring", "polygon", "geometrycollection", "geomcollection", "multipoint",
    "multilinestring", "multipolygon",
})  # fmt: skip

#: how many values of a SET column are cached; a SET of n labels has 2^n values
_CACHED_SETS = 1024
_TYPE_ARGUMENTS = re.compile(r"\w+\s*\(([\d,\s]+)\)")


def type_arguments(column: Column) -> tuple[int, ...]:
    """Return the numbers in parentheses after a column's type: `(18, 4)` for `decimal(18,4)`."""
    found = _TYPE_ARGUMENTS.match(column.raw_type)
    return tuple(map(int, found[1].split(","))) if found else ()


def fraction_digits(column: Column) -> int:
    """Return the number of fractional-second digits of a TIME, DATETIME or TIMESTAMP column."""
    return next(iter(type_arguments(column)), 0)


def quoted(label: str) -> str:
    """Return an ENUM's or SET's label as a SQL literal."""
    return "'" + label.replace("'", "''") + "'"


def enum_label(column: Column, text: bytes) -> str:
    """Return the label of an ENUM value. Index 0, which MySQL stores for an invalid value, is the empty string.

    Without known labels, returns the index.
    """
    if column.lacks_labels:
        return text.decode()
    index = int(text)
    return column.values[index - 1] if index else ""


def set_labels(column: Column, text: bytes) -> list[str]:
    """Return the labels of a SET value in the column's order. Raises LookupError for a bit without a label.

    Without known labels, returns the bit mask.
    """
    if column.lacks_labels:
        return [text.decode()]
    mask = int(text)
    if mask >> len(column.values):
        raise LookupError("a SET value has a bit without a label")
    return [label for bit, label in enumerate(column.values) if mask >> bit & 1]


def label_encoder(
    column: Column, encode_label: Callable[[str], Encoded], encode_labels: Callable[[list[str]], Encoded]
) -> Callable[[bytes], Encoded]:
    """Return a caching encoder of an ENUM's or SET's values. It raises LookupError or ValueError for an invalid one."""
    if column.type == "set":
        return lru_cache(_CACHED_SETS)(lambda text: encode_labels(set_labels(column, text)))
    if column.lacks_labels:
        return lambda text: encode_label(enum_label(column, text))
    numbers = [b"%d" % index for index in range(len(column.values) + 1)]
    return {number: encode_label(enum_label(column, number)) for number in numbers}.__getitem__


def invalid_value(table: Table, error: Exception) -> PoisonError:
    """Make the error for a row that does not fit its table's schema. Raise it `from None`: the cause quotes values."""
    return PoisonError(f"a row of {table.full_name} has a value that does not fit its column ({type(error).__name__})")

"""What formats ask of a column and of a value's canonical text (docs/reference/values.md)."""

import re

from databus.events import Column

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
FLOATS = frozenset({"float", "double"})
BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
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

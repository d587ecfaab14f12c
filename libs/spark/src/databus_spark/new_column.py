"""The value that the rows of a table have in a column that is added to it."""

import re

from databus_changes.ddl.definition import ColumnDefinition
from databus_core.definitions import sized_type
from databus_core.errors import CannotApply
from databus_core.events import Column
from databus_spark.types import TypeOptions, lake_type, literal, value

NULL = "null"
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("char", "varchar")
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"
#: types → defaults whose text is that of the value
_CANONICAL = {
    _INTEGERS: re.compile(r"[+-]?\d+"),
    ("decimal", "float", "double"): re.compile(r"[+-]?\d+(\.\d+)?"),
    ("date",): re.compile(r"\d{4}-\d\d-\d\d"),
    ("datetime",): re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?"),
    # a number without quotes is written as the server writes numbers: 007 is 7, and 1e3 is 1000
    _TEXTS: re.compile(rf"(?!{_NUMBER}\Z).*|0|-?[1-9]\d{{0,17}}(\.\d{{1,18}})?", re.DOTALL | re.IGNORECASE),
}


def initial_value(column: Column, added: ColumnDefinition, types: TypeOptions, *, in_key: bool) -> str:
    """Build the SQL of the value. Raises CannotApply if it is not certain.

    in_key: whether the column is in the primary key afterwards, and so NOT NULL.
    """
    if added.computes_default or added.generated or added.auto_increment:
        raise CannotApply(f"column {column.name} was added with computed values")
    kind, size, scale = sized_type(column)
    if kind == "timestamp" and added.nullable is None:  # what that means depends on the server
        raise CannotApply(f"column {column.name} was added with a default that is not written")
    # the text of these has as many digits as the type
    is_padded = size > 0 and kind in {"decimal", "datetime"} and lake_type(column, types) == "string"
    if added.default is None:
        if added.nullable is not False and not in_key:
            return NULL
        if is_padded:
            raise CannotApply(f"column {column.name} of type {column.raw_type} was added as NOT NULL")
        return _implicit(column, kind)
    default = added.default.rstrip(" ") if kind == "char" else added.default
    pattern = next((pattern for kinds, pattern in _CANONICAL.items() if kind in kinds), None)
    # servers round or truncate further digits and characters
    is_rounded = kind == "datetime" and len(default.partition(".")[2]) > size
    is_rounded |= kind in {"float", "double"} and scale > 0
    is_rounded |= kind in _TEXTS and len(default) > size
    if pattern is None or not pattern.fullmatch(default) or is_padded or is_rounded:
        raise CannotApply(f"column {column.name} of type {column.raw_type} was added with a default")
    return value(column, f"cast({literal(default)} as binary)", types)


def _implicit(column: Column, kind: str) -> str:
    """Build the SQL of the value that rows have in a column that is NOT NULL and has no default."""
    if kind in {*_INTEGERS, "decimal", "float", "double", "year", "bit"}:
        return "0"
    if kind in {*_TEXTS, "enum"} or kind.endswith("text"):
        return literal(column.values[0] if column.values else "")
    if kind == "varbinary" or kind.endswith("blob"):
        return "cast('' as binary)"
    raise CannotApply(f"column {column.name} of type {column.raw_type} was added as NOT NULL without a default")

"""What becomes of a column: its type in the lake, and the SQL that reads a cell's canonical text as that type.

A cell that its type cannot hold (a zero date, a label that is not known) is read as NULL, never as another value; the
change log keeps its text. The whole mapping is in docs/reference/lake.md.
"""

import re

from databus.events import Column

_RAW_TYPE = re.compile(r"(?P<kind>\w+)\s*(?:\((?P<size>\d+)(?:,(?P<scale>\d+))?\))?")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

_INTEGERS = {"tinyint", "smallint", "mediumint", "int", "integer", "bigint", "year"}
_SAME = {
    "float": "float",
    "double": "double",
    "date": "date",
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
} | dict.fromkeys(
    ("time", "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "enum", "set"), "string"
)
_UNSIGNED_64 = "decimal(20,0)"


def lake_type(column: Column) -> str:
    """Name a column's SQL type, in Spark's short form."""
    match = _RAW_TYPE.match(column.raw_type.lower())
    kind, size, scale = match.group("kind", "size", "scale") if match else ("", None, None)
    if kind in _INTEGERS:
        return _UNSIGNED_64 if kind == "bigint" and "unsigned" in column.raw_type.lower() else "bigint"
    if kind == "bit":
        return _UNSIGNED_64 if size == "64" else "bigint"
    if kind in ("decimal", "numeric"):
        # Spark's decimals end at 38 digits, MySQL's at 65.
        return f"decimal({size or 10},{scale or 0})" if int(size or 10) <= 38 else "string"
    return _SAME.get(kind, "binary")


def value(column: Column, cell: str) -> str:
    """Build the SQL that reads `cell` (binary) as `lake_type(column)`; NULL where it cannot."""
    text = f"cast({cell} as string)"
    match _kind(column), lake_type(column):
        case "enum", _:
            return f"case {text} when '0' then '' else try_element_at({_labels(column)}, try_cast({text} as int)) end"
        case "set", _:
            bits = f"reverse(conv({text}, 10, 2))"
            chosen = f"filter({_labels(column)}, (label, bit) -> substring({bits}, bit + 1, 1) = '1')"
            return f"if({cell} is null, null, array_join({chosen}, ','))"
        case _, "binary":
            return cell
        case _, "string":
            return text
        case _, kind:
            return f"try_cast({text} as {kind})"


def can_fail(column: Column) -> bool:
    """Say whether a value other than NULL may be read as NULL."""
    return lake_type(column) not in ("string", "binary") or _kind(column) == "enum"


def holds(container: str, kind: str) -> bool:
    """Say whether every value of one type is, unchanged, a value of another."""
    if container == kind or (kind, container) == ("float", "double"):
        return True
    outer = _DECIMAL.fullmatch(container)
    inner = ("19", "0") if kind == "bigint" else (m.groups() if (m := _DECIMAL.fullmatch(kind)) else None)
    if not outer or not inner:
        return False
    (digits, scale), (needed, fraction) = map(int, outer.groups()), map(int, inner)
    return scale >= fraction and digits - scale >= needed - fraction


def identifier(name: str) -> str:
    """Quote a column's or table's name."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Quote a string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _kind(column: Column) -> str:
    return column.raw_type.lower().partition("(")[0]


def _labels(column: Column) -> str:
    return f"cast(array({', '.join(map(literal, column.values))}) as array<string>)"

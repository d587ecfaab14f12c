"""What becomes of a column: its type in the lake, and the SQL that reads a cell's canonical text as that type.

A cell that its type cannot hold (a zero date, a label that is not known) is read as NULL, never as another value; the
change log keeps its text. The whole mapping is in docs/reference/lake.md.
"""

import re

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from databus.events import Column, Table

#: column → SQL type, in the table's order
Columns = dict[str, str]

#: What the change log knows of a row image beside its values.
METADATA: Columns = {
    "_action": "string",
    "_file": "string",
    "_position": "bigint",
    "_topic": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_row": "int",
    "_time": "timestamp",
    "_query": "string",
    "_original": "map<string,string>",
}

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


def lake_columns(table: Table) -> Columns:
    """Give a table's columns with their types in the lake."""
    return {column.name: lake_type(column) for column in table.columns}


def typed_rows(parsed: DataFrame, table: Table, into: Columns) -> DataFrame:
    """Type the row images of messages that have one schema; a column of `into` that the schema lacks is NULL."""
    cells = parsed.select("*", sql.explode("m.Rows").alias("cells"))
    return cells.selectExpr(*_typed(table, into))


def change_log_entries(parsed: DataFrame, table: Table, into: Columns) -> DataFrame:
    """Type row images like `rows`, and DDL statements with NULL in every column, as entries of the change log."""
    # An outer explode keeps a statement, which has no rows.
    cells = parsed.select("*", sql.posexplode_outer("m.Rows").alias("_row", "cells"))
    own = {
        "_action": "if(m.Action = 'update', if(_row % 2 = 0, 'update_before', 'update_after'), m.Action)",
        "_query": "cast(m.Query as string)",
        "_original": _original(table),
    }
    metadata = (f"cast({own.get(name, name)} as {kind}) as {name}" for name, kind in METADATA.items())
    return cells.selectExpr(*metadata, *_typed(table, into))


def _typed(table: Table, into: Columns) -> list[str]:
    """Build the SQL that makes `into`'s columns from `cells`."""
    place = {column.name.lower(): place for place, column in enumerate(table.columns)}
    typed = []
    for name, kind in into.items():
        known = place.get(name.lower())
        cell = "null" if known is None else value(table.columns[known], f"cells[{known}]")
        typed.append(f"cast({cell} as {kind}) as {identifier(name)}")
    return typed


def _original(table: Table) -> str:
    """Build the SQL of a map: column → text of each cell that its type cannot hold; NULL if there is none."""
    entries = []
    for place, column in enumerate(table.columns):
        if can_fail(column):
            cell = f"cells[{place}]"
            text = f"if({value(column, cell)} is null, cast({cell} as string), null)"
            entries.append(f"struct({literal(column.name)} as key, {text} as value)")
    empty = "cast(array() as array<struct<key: string, value: string>>)"
    lost = f"filter(array({', '.join(entries)}), entry -> entry.value is not null)" if entries else empty
    return f"map_from_entries(nullif({lost}, {empty}))"

"""A column's type in the lake, and the SQL that turns row images into typed rows.

A cell that its type cannot represent (a zero date, an unknown label) becomes NULL, never another value; the change log
has its text. docs/reference/lake.md has the complete mapping.
"""

import re
from typing import Literal

import msgspec

from databus_core.definitions import sized_type
from databus_core.events import Column, Table
from databus_core.settings import SparkTypes

#: column → SQL type, in the table's order
Columns = dict[str, str]

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

_INTEGERS = {"tinyint", "smallint", "mediumint", "int", "integer", "bigint", "year"}
#: MySQL types that have zero and partial dates → SQL types that have not
_DATES = {"date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp"}
#: MySQL type → SQL type
_TYPES = {"float": "float", "double": "double"} | dict.fromkeys(
    (*_DATES, "time", "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "enum", "set"), "string"
)
_BLOBS = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
#: types, without their sizes, whose cells are converted alike if their types in the lake are the same
_KINDS = [
    kind + sign
    for kind in sorted(_INTEGERS | _TYPES.keys() - {"enum", "set"} | {"bit", *_BLOBS})
    for sign in ("", " unsigned")
]
#: holds every BIGINT UNSIGNED
_UNSIGNED_64 = "decimal(20,0)"


class TypeOptions(msgspec.Struct, frozen=True):
    """What the lake has for types that Spark does not have exactly: the settings `spark.types`."""

    #: for `date`, `datetime` and `timestamp`: Spark's types, with NULL for a zero date, or the text
    zero_dates: Literal["null", "string"] = "null"
    time_columns: Literal["string", "microseconds"] = "string"
    json_columns: Literal["string", "variant"] = "string"


DEFAULT_TYPES = TypeOptions()


def type_options(settings: SparkTypes) -> TypeOptions:
    """Return the options that the settings have."""
    return TypeOptions(settings.zero_dates, settings.time_columns, settings.json_columns)


def lake_type(column: Column, types: TypeOptions) -> str:
    """Return a column's SQL type in the lake, spelled as in `DataFrame.dtypes`."""
    kind, size, scale = sized_type(column)
    if kind in _INTEGERS:
        return _UNSIGNED_64 if kind == "bigint" and "unsigned" in column.raw_type.lower() else "bigint"
    if kind == "bit":
        return _UNSIGNED_64 if size == 64 else "bigint"
    if kind == "decimal":
        # Decimals have up to 38 digits in Spark, 65 in MySQL.
        return f"decimal({size or 10},{scale})" if (size or 10) <= 38 else "string"
    if kind in _DATES and types.zero_dates == "null":
        return _DATES[kind]
    if kind == "time" and types.time_columns == "microseconds":
        return "bigint"
    return types.json_columns if kind == "json" else _TYPES.get(kind, "binary")


def value(column: Column, cell: str, types: TypeOptions) -> str:
    """Build the SQL that converts `cell` (binary) to its `lake_type`, to NULL if the type cannot represent it."""
    text = f"cast({cell} as string)"
    match _kind(column), lake_type(column, types):
        case "enum", _:
            return f"case {text} when '0' then '' else try_element_at({_labels(column)}, try_cast({text} as int)) end"
        case "set", _:
            bits = f"reverse(conv({text}, 10, 2))"
            chosen = f"filter({_labels(column)}, (label, bit) -> substring({bits}, bit + 1, 1) = '1')"
            return f"if({cell} is null, null, array_join({chosen}, ','))"
        case "time", "bigint":
            return microseconds(text)
        case _, "timestamp":  # the text has no time zone; that of the session need not be UTC
            return f"try_cast({text} || 'Z' as timestamp)"
        case _, kind:
            exact = {"binary": cell, "string": text, "variant": f"try_parse_json({text})"}
            return exact.get(kind, f"try_cast({text} as {kind})")


def converts(column: Column, other: str, types: TypeOptions) -> str:
    """Build the SQL condition of whether `value` of this column is right for cells of the same column in another table.

    `other` is that column as messages have it, with RawType, EnumValues and SetValues.
    """
    raw, kind = f"lower({other}.RawType)", _kind(column)
    if kind in ("enum", "set"):  # labels that are added at the end do not change the others
        labels = f"coalesce({other}.EnumValues, {other}.SetValues)"
        return f"startswith({raw}, '{kind}(') and {labels} = slice({_labels(column)}, 1, size({labels}))"
    if kind in ("decimal", "numeric") and (decimal := _DECIMAL.fullmatch(lake_type(column, types))):
        digits, scale = map(int, decimal.groups())
        text = f"regexp_extract({raw}, '^(decimal|numeric)[(]([0-9]+),([0-9]+)', %d)"
        needed, fraction = (f"try_cast({text % group} as int)" for group in (2, 3))
        return f"coalesce({fraction} <= {scale} and {needed} - {fraction} <= {digits - scale}, false)"
    others = {each: lake_type(Column(name="", type="", raw_type=each), types) for each in _KINDS}
    same = [each for each, other_type in others.items() if other_type == lake_type(column, types)]
    # The number of a TIME, its microseconds, is none of other columns.
    alike = same if "varchar" in same else [each for each in same if (each == "time") == (kind == "time")]
    base = f"concat(regexp_extract({raw}, '^[a-z]+', 0), if(contains({raw}, ' unsigned'), ' unsigned', ''))"
    is_alike = f"array_contains(cast(array({', '.join(map(literal, alike))}) as array<string>), {base})"
    return f"({raw} = {literal(column.raw_type.lower())} or {is_alike} and {raw} <> 'bit(64)')"


def may_become_null(column: Column, types: TypeOptions) -> bool:
    """Return whether a value other than NULL may become NULL."""
    return lake_type(column, types) not in ("string", "binary") or _kind(column) == "enum"


def can_represent(container: str, kind: str) -> bool:
    """Return whether every value of type `kind` is, unchanged, a value of type `container`."""
    if container == kind or (kind, container) == ("float", "double"):
        return True
    outer = _DECIMAL.fullmatch(container)
    inner = ("19", "0") if kind == "bigint" else (m.groups() if (m := _DECIMAL.fullmatch(kind)) else None)
    if not outer or not inner:
        return False
    (digits, scale), (needed, fraction) = map(int, outer.groups()), map(int, inner)
    return scale >= fraction and digits - scale >= needed - fraction


def identifier(name: str) -> str:
    """Quote an identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Quote a string literal."""
    # Spark would replace `${name}` by a setting, also in a literal.
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"


def _kind(column: Column) -> str:
    return column.raw_type.lower().partition("(")[0]


def _labels(column: Column) -> str:
    return f"cast(array({', '.join(map(literal, column.values))}) as array<string>)"


def lake_columns(table: Table, types: TypeOptions) -> Columns:
    """Return a table's columns with their types in the lake."""
    return {column.name: lake_type(column, types) for column in table.columns}


def microseconds(text: str) -> str:
    """Build the SQL that converts a TIME, as `-838:59:59.000000`."""
    hours, minutes, seconds = (f"split_part(ltrim('-', {text}), ':', {part})" for part in (1, 2, 3))
    whole = f"try_cast({hours} as bigint) * 3600 + try_cast({minutes} as bigint) * 60"
    length = f"({whole} + try_cast({seconds} as decimal(8,6))) * 1000000"
    return f"cast(if(startswith({text}, '-'), -1, 1) * {length} as bigint)"


def typed_cells(table: Table, into: Columns, types: TypeOptions) -> list[str]:
    """Build the SQL that computes the columns `into` from `cells`, NULL where the table lacks one."""
    indexes = {column.name.lower(): index for index, column in enumerate(table.columns)}
    typed = []
    for name, kind in into.items():
        index = indexes.get(name.lower())
        cell = "null" if index is None else value(table.columns[index], f"cells[{index}]", types)
        typed.append(f"cast({cell} as {kind}) as {identifier(name)}")
    return typed


def lost_values(table: Table, types: TypeOptions) -> dict[str, str]:
    """Build the SQL, for each column that may have such values, of whether a value in `cells` becomes NULL."""
    return {
        column.name: f"cells[{index}] is not null and {value(column, f'cells[{index}]', types)} is null"
        for index, column in enumerate(table.columns)
        if lake_type(column, types) in {*_DATES.values(), "variant"}
    }

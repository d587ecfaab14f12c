"""What ALTER TABLE does to the rows that a table already has, as far as its text and both definitions show it."""

import re
from dataclasses import dataclass

from databus.errors import CannotApply
from databus.events import Column, Table
from databus_changes.ddl.definition import ColumnDefinition
from databus_changes.ddl.read_column_changes import read_column_changes
from databus_changes.ddl.token import UnreadableStatement
from databus_spark.types import TypeOptions, can_represent, identifier, lake_type, literal, value

_SIZE = re.compile(r"^(\w+)\s*(?:\((\d+)(?:,(\d+))?\))?")
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("tinytext", "text", "mediumtext", "longtext")
_BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
#: a value of a type is, unchanged, one of a later type of the same family
_FAMILIES = (
    _INTEGERS,
    ("char", "varchar"),
    _TEXTS,
    ("varchar", *_TEXTS[1:]),
    _BLOBS,
    ("varbinary", *_BLOBS[1:]),
    ("datetime",),
    ("timestamp",),
    ("bit",),
)
_NULL = "null"
#: types → defaults whose text is that of the value
_CANONICAL = {
    _INTEGERS: re.compile(r"[+-]?\d+"),
    ("decimal", "float", "double"): re.compile(r"[+-]?\d+(\.\d+)?"),
    ("date",): re.compile(r"\d{4}-\d\d-\d\d"),
    ("datetime",): re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?"),
    ("char", "varchar"): re.compile(r".*", re.DOTALL),
}


@dataclass(frozen=True)
class RowChange:
    """How a table's rows change."""

    #: the SQL of each new column, in the table's order, over the columns that the mirror has
    columns: dict[str, str]
    #: whether only columns were added that are NULL in all rows, or types became wider
    only_schema: bool
    #: whether each column has the values that it had, and the type
    is_identity: bool
    #: columns, by their old names, whose NULLs may have become other values: they may not be NULL any more
    not_null: tuple[str, ...]


def row_change(before: Table, after: Table, query: str, types: TypeOptions) -> RowChange:
    """Return how the statement changes the rows. Raises CannotApply if that cannot be told, with the reason."""
    try:
        changes = read_column_changes(query, before)
    except UnreadableStatement as error:
        raise CannotApply(str(error)) from error
    old = {column.name.lower(): column for column in before.columns}
    columns: dict[str, str] = {}
    only_schema = len(after.columns) >= len(before.columns)
    not_null = []
    is_identity = len(after.columns) == len(before.columns)
    for index, column in enumerate(after.columns):
        source = old.get(changes.source(column.name) or "")
        added = changes.added.get(column.name.lower())
        if source is not None:
            if not keeps_values(source, column, types):
                raise CannotApply(f"column {column.name} changes from {source.raw_type} to {column.raw_type}")
            initial = identifier(source.name)
            definition = changes.redefined.get(column.name.lower())
            if definition and definition.generated:
                raise CannotApply(f"column {column.name} has computed values")
            if definition and definition.nullable is False:
                not_null.append(source.name)
            in_place = index < len(before.columns) and before.columns[index].name == column.name
        elif added is not None:
            initial = _initial(column, added, types)
            in_place = initial == _NULL and index >= len(before.columns)
        else:
            raise CannotApply(f"where column {column.name} comes from cannot be told")
        columns[column.name] = f"cast({initial} as {lake_type(column, types)})"
        only_schema = only_schema and in_place
        is_identity = is_identity and source is not None and in_place
    return RowChange(columns, only_schema, is_identity and not not_null, tuple(not_null))


def keeps_values(old: Column, new: Column, types: TypeOptions) -> bool:
    """Return whether each value of the old type is, unchanged, the value of the new type after an ALTER."""
    (kind, size, scale), (new_kind, new_size, new_scale) = _parts(old), _parts(new)
    if old.raw_type.lower() == new.raw_type.lower() and old.values == new.values:
        return True
    if kind == new_kind and kind in {"enum", "set"}:
        # The lake has the labels; those of a SET are in the order of the definition.
        return set(old.values) <= set(new.values) if kind == "enum" else new.values[: len(old.values)] == old.values
    if ("unsigned" in old.raw_type.lower()) != ("unsigned" in new.raw_type.lower()):
        return False
    if kind == new_kind == "decimal":
        lake, new_lake = lake_type(old, types), lake_type(new, types)
        is_text = "string" in (lake, new_lake)  # with all digits of the scale
        return size <= new_size and scale == new_scale if is_text else can_represent(new_lake, lake)
    if kind in {"datetime", "timestamp"} and lake_type(old, types) == "string":  # with all digits of the fraction
        return False
    fits = size <= new_size or kind in _INTEGERS or new_kind in (*_TEXTS, *_BLOBS)
    return fits and any(
        kind in family and new_kind in family and family.index(kind) <= family.index(new_kind) for family in _FAMILIES
    )


def _parts(column: Column) -> tuple[str, int, int]:
    match = _SIZE.match(column.raw_type.lower())
    if match is None:
        return column.raw_type.lower(), 0, 0
    kind = {"integer": "int", "numeric": "decimal"}.get(match[1], match[1])
    return kind, int(match[2] or 0), int(match[3] or 0)


def _initial(column: Column, added: ColumnDefinition, types: TypeOptions) -> str:
    """Build the SQL of the value that rows have in a column that was added."""
    if added.computes_default or added.generated or added.auto_increment:
        raise CannotApply(f"column {column.name} was added with computed values")
    kind, size, _ = _parts(column)
    if kind == "timestamp" and added.nullable is None:  # what that means depends on the server
        raise CannotApply(f"column {column.name} was added with a default that is not written")
    if added.default is None:
        return _implicit(column) if added.nullable is False or added.primary else _NULL
    pattern = next((pattern for kinds, pattern in _CANONICAL.items() if kind in kinds), None)
    # the text of these has as many digits as the type
    is_padded = size > 0 and kind in {"decimal", "datetime"} and lake_type(column, types) == "string"
    # servers round or truncate further digits
    is_rounded = kind == "datetime" and len(added.default.partition(".")[2]) > size
    if pattern is None or not pattern.fullmatch(added.default) or is_padded or is_rounded:
        raise CannotApply(f"column {column.name} of type {column.raw_type} was added with a default")
    return value(column, f"cast({literal(added.default)} as binary)", types)


def _implicit(column: Column) -> str:
    """Build the SQL of the value that rows have in a column that is NOT NULL and has no default."""
    kind = _parts(column)[0]
    if kind in _INTEGERS or kind in {"decimal", "float", "double", "year", "bit"}:
        return "0"
    if kind in {"char", "varchar", "enum", *_TEXTS}:
        return literal(column.values[0] if column.values else "")
    if kind in {"varbinary", *_BLOBS}:
        return "cast('' as binary)"
    raise CannotApply(f"column {column.name} of type {column.raw_type} was added as NOT NULL without a default")

"""What ALTER TABLE does to the rows that a table already has, as far as its text and both definitions show it."""

from collections.abc import Iterator
from dataclasses import dataclass

from databus_changes.ddl.column_changes import ColumnChanges
from databus_changes.ddl.definition import ColumnDefinition
from databus_changes.ddl.read_column_changes import read_column_changes
from databus_changes.ddl.statement import parse_statement
from databus_changes.ddl.token import UnreadableStatement
from databus_core.definitions import sized_type
from databus_core.errors import CannotApply
from databus_core.events import Column, Table
from databus_spark.new_column import NULL, initial_value
from databus_spark.types import TypeOptions, can_represent, identifier, lake_type

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("tinytext", "text", "mediumtext", "longtext")
_BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
#: a value of a type is, unchanged, one of a later type of the same family; CHAR is not one of VARCHAR, because it gets
#: trailing spaces with PAD_CHAR_TO_FULL_LENGTH
_FAMILIES = (
    _INTEGERS,
    ("char",),
    ("varchar",),
    _TEXTS,
    ("varchar", *_TEXTS[1:]),
    _BLOBS,
    ("varbinary", *_BLOBS[1:]),
    ("datetime",),
    ("timestamp",),
    ("bit",),
)
#: types that have a character set
_WITH_CHARSET = {"char", "varchar", "enum", "set", *_TEXTS}
#: character sets in which a character of ASCII is another one, or takes more than a byte
_UNLIKE_ASCII = {"swe7", "sjis", "ucs2", "utf16", "utf16le", "utf32", "binary"}


@dataclass(frozen=True)
class RowChange:
    """How a table's rows change."""

    #: the SQL of each new column, in the table's order, over the columns that the mirror has
    columns: dict[str, str]
    #: whether only columns were added that are NULL in all rows, or types became wider
    only_schema: bool
    #: whether each column has the values that it had, and the type
    is_identity: bool
    #: whether the statement names columns, or converts them
    concerns_columns: bool
    #: column, by its old name → the SQL that finds rows that may have got another value in it
    doubts: dict[str, str]


def row_change(before: Table, after: Table, query: str, types: TypeOptions) -> RowChange:
    """Return how the statement changes the rows. Raises CannotApply if that is not certain, with the reason."""
    changes = _read(query, before)
    old = {column.name.lower(): column for column in before.columns}
    old_key, key = ({table.columns[index].name for index in table.primary_key} for table in (before, after))
    columns: dict[str, str] = {}
    doubts: dict[str, str] = {}
    only_schema = len(after.columns) >= len(before.columns)
    is_identity = len(after.columns) == len(before.columns)
    for index, column in enumerate(after.columns):
        source = old.get(changes.source(column.name) or "")
        added = changes.added.get(column.name.lower())
        if source is not None:
            if not keeps_values(source, column, types):
                raise CannotApply(f"column {column.name} changes from {source.raw_type} to {column.raw_type}")
            initial = identifier(source.name)
            joins_key = column.name in key and source.name not in old_key
            if found := " or ".join(_doubts(initial, column, changes, joins_key=joins_key)):
                doubts[source.name] = found
            in_place = index < len(before.columns) and before.columns[index].name == column.name
        elif added is not None:
            initial = initial_value(column, added, types, in_key=column.name in key)
            in_place = initial == NULL and index >= len(before.columns)
        else:
            raise CannotApply(f"it is not certain where column {column.name} comes from")
        columns[column.name] = f"cast({initial} as {lake_type(column, types)})"
        only_schema = only_schema and in_place
        is_identity = is_identity and source is not None and in_place
    return RowChange(columns, only_schema, is_identity and not doubts, changes.concern_columns, doubts)


def _read(query: str, before: Table) -> ColumnChanges:
    try:
        statement = parse_statement(query, before.schema)
    except UnreadableStatement as error:
        raise CannotApply(str(error)) from error
    if statement.unlogged:
        raise CannotApply("it may have removed or replaced rows")
    if "/*M!" in query:
        raise CannotApply("it has a comment that only MariaDB executes")
    return read_column_changes(statement, before)


def _doubts(cell: str, column: Column, changes: ColumnChanges, *, joins_key: bool) -> Iterator[str]:
    """Yield the SQL that finds rows in which a column that was kept may have got another value."""
    definition = changes.redefined.get(column.name.lower())
    if definition and definition.generated:
        raise CannotApply(f"column {column.name} has computed values")
    if joins_key or (definition and _may_exclude_null(definition)):
        yield f"{cell} is null"
    if definition and definition.auto_increment:  # the server numbers rows with zero
        yield f"{cell} = 0"
    if (definition or changes.converted) and _may_lose_characters(column, definition, changes.converted):
        yield f"octet_length({cell}) > char_length({cell})"


def _may_exclude_null(definition: ColumnDefinition) -> bool:
    """Return whether a column is NOT NULL, also if only the server's explicit_defaults_for_timestamp shows that."""
    return definition.nullable is False or (definition.type == "timestamp" and definition.nullable is None)


def _may_lose_characters(column: Column, definition: ColumnDefinition | None, converted: str) -> bool:
    """Return whether a column may be converted to a character set that lacks characters other than those of ASCII.

    A definition that names none gives the column that of its table, which messages do not have. Without strict mode the
    server replaces such characters by `?`, and cuts off what a TEXT type has no room for.
    """
    kind = sized_type(column)[0]
    if kind not in _WITH_CHARSET:
        return False
    charset = converted or (definition.named_charset if definition else "")
    if charset in _UNLIKE_ASCII:
        raise CannotApply(f"column {column.name} is converted to {charset}")
    may_be_full = not converted and kind in _TEXTS[:-1]
    return charset != "utf8mb4" or may_be_full


def keeps_values(old: Column, new: Column, types: TypeOptions) -> bool:
    """Return whether each value of the old type is, unchanged, the value of the new type after an ALTER."""
    (kind, size, scale), (new_kind, new_size, new_scale) = sized_type(old), sized_type(new)
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

"""Compares the columns of a known table with those of a table map, and adds the table's column names to the map."""

import re
from collections.abc import Sequence

import msgspec

from databus_binlog import ColumnMap, TableMap
from databus_binlog.table_map import NOT_LOGGED, FieldType
from databus_changes.charsets import charset_name
from databus_changes.table_maps import table_of
from databus_core.events import Column, Index, Table

#: MariaDB's type → the type in the binlog
_ALIASES = {"uuid": "binary(16)", "inet6": "binary(16)", "inet4": "binary(4)"}
_SPATIAL = {"point", "linestring", "polygon", "geometrycollection", "geomcollection"}
_SPATIAL |= {f"multi{kind}" for kind in ("point", "linestring", "polygon")}
#: types whose sizes in `raw_type` are compared
_SIZED = {"decimal", "bit", "time", "datetime", "timestamp", "char", "varchar", "binary", "varbinary"}
_SIZES = re.compile(r"\([\d,]+\)")
_CHARACTER = {
    FieldType.STRING, FieldType.VAR_STRING, FieldType.VARCHAR, FieldType.VARCHAR_COMPRESSED,
    FieldType.BLOB, FieldType.BLOB_COMPRESSED, FieldType.ENUM, FieldType.SET,
}  # fmt: skip


class ColumnsDiffer(Exception):
    """The columns of a table map differ from those of the known table; the message names the difference."""


def same_columns(known: Table, logged: Table) -> bool:
    """Return whether a known table has the columns and the key of a table that a table map describes."""
    return known.row_key == logged.row_key and _fit(known.columns, logged.columns)


def listed_as_logged(listed: Table, logged: Table) -> Table | None:
    """Return the table of information_schema with the columns that are logged; None if it does not fit them.

    information_schema does not list the implicit period columns of a system-versioned table. MariaDB logs them after
    all others, and adds the last one, `row_end`, to each unique key.
    """
    if same_columns(listed, logged):
        return listed
    names = [column.name for column in logged.columns]
    key = listed.row_key and (*listed.row_key, len(names) - 1)
    if not _fit(listed.columns, logged.columns[:-2]) or names[-2:] != ["row_start", "row_end"] or logged.row_key != key:
        return None
    if listed.primary_key or not key:
        return msgspec.structs.replace(logged, key_assumed=False)
    name = next(index.name for index in listed.indexes if index.columns == tuple(names[i] for i in listed.row_key))
    index = Index(name, tuple(names[i] for i in key), unique=True)
    return msgspec.structs.replace(logged, primary_key=(), key_assumed=False, indexes=(index,))


def _fit(known: Sequence[Column], logged: Sequence[Column]) -> bool:
    """Return whether the known columns are the logged ones. Labels are compared only if they are logged."""
    if len(known) != len(logged):
        return False
    completed = (
        msgspec.structs.replace(new, values=new.values or old.values) for old, new in zip(known, logged, strict=True)
    )
    return [*map(_shape, known)] == [*map(_shape, completed)]


def with_declared_types(table: Table, known: Table | None) -> Table:
    """Return a table from information_schema with the declared types of the known table's columns.

    A column that was given the same stored type by another statement, which is not known, keeps the declared type.
    """
    if known is None:
        return table
    declared = {(column.name, column.raw_type): column.declared for column in known.columns}
    columns = tuple(
        msgspec.structs.replace(column, declared=declared.get((column.name, column.raw_type), ""))
        for column in table.columns
    )
    return msgspec.structs.replace(table, columns=columns)


def complete_table_map(table_map: TableMap, table: Table) -> TableMap:
    """Return a table map with the column names, labels, visibility and key of a known table.

    Signs, character sets and numbers of fraction digits are added where they are not logged.
    Raises ColumnsDiffer if the number of columns, or what is logged about a column, does not fit the table.
    """
    hidden = table_map.columns[len(table.columns) :]
    may_be_hidden = len(hidden) <= len(table.indexes) and all(map(_is_hash, hidden))
    if len(table_map.columns) < len(table.columns) or not may_be_hidden:
        raise ColumnsDiffer(f"the rows have {len(table_map.columns)} columns, the known table {len(table.columns)}")
    columns = tuple(map(_complete, table.columns, table_map.columns))
    complete = msgspec.structs.replace(
        table_map, columns=columns, key=table.row_key, has_names=True, hidden=table_map.hidden + len(hidden)
    )
    for known, logged, column_map in zip(table.columns, table_of(complete).columns, columns, strict=True):
        known_shape, logged_shape = _shape(_with_nullability(known, logged)), _shape(logged)
        for attribute, value in logged_shape.items():
            if value != known_shape[attribute]:
                known_value = _shown(known_shape[attribute])
                raise ColumnsDiffer(
                    f"column {known.name}: {attribute} is {_shown(value)} in the rows, {known_value} in the known table"
                )
        if not _fits_labels(known, column_map):
            raise ColumnsDiffer(
                f"column {known.name}: values of {column_map.metadata} bytes in the rows do not fit the "
                f"{len(known.values)} labels in the known table"
            )
    return complete


def _is_hash(column: ColumnMap) -> bool:
    """Return whether a column may be one that MariaDB adds, hidden, for a unique index over a TEXT or BLOB."""
    return column.type == FieldType.LONGLONG and column.nullable and column.unsigned is not False


def _complete(known: Column, logged: ColumnMap) -> ColumnMap:
    charset = logged.charset
    if charset is None and logged.type in _CHARACTER:
        charset = known.charset or "binary"
    return msgspec.structs.replace(
        logged,
        name=known.name,
        unsigned=known.unsigned if logged.unsigned is None else logged.unsigned,
        charset=charset,
        values=known.values or None,
        visible=not known.invisible,
        metadata=_fraction(known) if logged.metadata == NOT_LOGGED else logged.metadata,
    )


def _fraction(known: Column) -> int:
    """Return a temporal column's number of fraction digits.

    MariaDB does not log it for columns that still have the storage format from before 10.1.
    """
    sizes = _SIZES.search(known.raw_type)
    return int(sizes[0][1:-1]) if sizes and sizes[0][1:-1].isdigit() else 0


def _with_nullability(known: Column, logged: Column) -> Column:
    """Return the known column; if it is a TIMESTAMP, with the nullability that is logged.

    DDL without NULL or NOT NULL depends on explicit_defaults_for_timestamp of its session, which is not known.
    """
    return msgspec.structs.replace(known, nullable=logged.nullable) if known.type == "timestamp" else known


def _fits_labels(known: Column, logged: ColumnMap) -> bool:
    """Return whether an ENUM or SET with the known labels has the logged size in bytes; True for other types."""
    if logged.type == FieldType.ENUM:
        return logged.metadata == (1 if len(known.values) < 2**8 else 2)
    if logged.type == FieldType.SET:
        return logged.metadata == next(size for size in (1, 2, 3, 4, 8) if len(known.values) <= 8 * size)
    return True


def _shape(column: Column) -> dict[str, object]:
    """Return the attributes by which columns are compared. A table map has all of them once it is completed."""
    alias = _ALIASES.get(column.type)
    kind = "binary" if alias else "geometry" if column.type in _SPATIAL else column.type
    sizes = _SIZES.search(alias or column.raw_type) if kind in _SIZED else None
    charset = "" if alias else charset_name(column.charset)
    return {
        "name": column.name,
        "type": kind,
        "size": sizes[0] if sizes else "",
        "character set": charset,
        "nullable": column.nullable,
        "unsigned": column.unsigned,
        "labels": column.values,
    }


def _shown(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value or "none"

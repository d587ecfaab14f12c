"""The columns of mirrors, made from the definition of a table."""

from databus_core.events import Table
from databus_spark.errors import TableParked
from databus_spark.types import Columns, TypeOptions, lake_type

#: name of the mirror's column with the sequence of the change that wrote the row (ADR 18); empty: a dump's row
SEQUENCE = "_seq"

#: names of columns that the change log and mirrors have, and that queries use
_RESERVED = {SEQUENCE, "_action", "_row", "_topic", "_partition", "_offset", "_last", "cells"}


def same_rows(one: Table, other: Table) -> bool:
    """Return whether rows of both definitions have the same columns, types and key."""
    return one.columns == other.columns and one.primary_key == other.primary_key


def mirror_columns(table: Table, types: TypeOptions) -> Columns:
    """Return the columns of a table's mirror, with their types. Raises TableParked if it has a reserved name."""
    if reserved := sorted({column.name.lower() for column in table.columns} & _RESERVED):
        raise TableParked(f"it has a column {reserved[0]}, a name that the lake uses", heals=False)
    return {column.name: lake_type(column, types) for column in table.columns} | {SEQUENCE: "string"}

"""Finds the columns of a table that a rule names.

If the table lacks a named column, that is an error, and nothing of the table is published: neither a typo nor DDL may
expose a column that was meant to be hidden. A pattern (`*`, `?`) may match any number of columns, also none.
"""

from collections.abc import Iterable

from databus_core.errors import InvalidSettings
from databus_core.events import Table
from databus_core.table_filter import name_pattern


def column_index(table: Table, name: str) -> int:
    """Return the index of a column. Raises InvalidSettings if the table has no column of this name."""
    for index, column in enumerate(table.columns):
        if column.name == name:
            return index
    raise InvalidSettings(f"there is no column {name}")


def column_indexes(table: Table, names: Iterable[str]) -> set[int]:
    """Return the indexes of columns by name or pattern. Raises InvalidSettings for a name that does not exist."""
    found: set[int] = set()
    for name in names:
        if "*" in name or "?" in name:
            matches = name_pattern(name).fullmatch
            found |= {index for index, column in enumerate(table.columns) if matches(column.name)}
        else:
            found.add(column_index(table, name))
    return found

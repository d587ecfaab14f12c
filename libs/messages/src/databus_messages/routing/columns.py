"""The columns that a rule names.

A column that is named has to be there, or nothing of its table is published: a name that is misspelt, or that DDL has
changed, must not lay open what was to be hidden. A pattern (`*`, `?`) means the columns it matches, be it none.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from databus.errors import InvalidSettings
from databus.events import Table


def place_of(table: Table, name: str) -> int:
    """Find a column by its name. Raises InvalidSettings."""
    for place, column in enumerate(table.columns):
        if column.name == name:
            return place
    raise InvalidSettings(f"there is no column {name}")


def places_of(table: Table, names: Iterable[str]) -> set[int]:
    """Find columns by names and patterns. Raises InvalidSettings for a name that is not there."""
    found: set[int] = set()
    for name in names:
        if "*" in name or "?" in name:
            found |= {place for place, column in enumerate(table.columns) if fnmatchcase(column.name, name)}
        else:
            found.add(place_of(table, name))
    return found

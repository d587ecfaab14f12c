"""Names of tables, and which tables are captured."""

from collections.abc import Iterable
from typing import Protocol, TypeAlias

#: schema and name
TableName: TypeAlias = tuple[str, str]
#: a table's name before and after one step of a statement
Rename: TypeAlias = tuple[TableName, TableName]


def moves(renames: Iterable[Rename]) -> dict[TableName, TableName]:
    """Return the new name of each table that one statement renames, by its name before the statement."""
    names: dict[TableName, TableName] = {}  # new name → name before the statement
    for old, new in renames:
        names[new] = names.pop(old, old)
    return {old: new for new, old in names.items() if old != new}


def quoted_name(name: TableName) -> str:
    """Quote a table's name for a statement."""
    schema, table = (part.replace("`", "``") for part in name)
    return f"`{schema}`.`{table}`"


class CapturedTables(Protocol):
    """The part of the `source` settings that selects tables (`include`, `exclude`)."""

    def captures(self, schema: str, table: str) -> bool:
        """Return whether the changes of a table are captured."""
        ...

    def captures_some(self, schema: str) -> bool:
        """Return whether tables of a schema may be captured."""
        ...

    def mentions_some(self, text: str) -> bool:
        """Return whether a text may contain the name of a captured schema."""
        ...

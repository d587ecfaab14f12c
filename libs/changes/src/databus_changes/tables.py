"""Names of tables, and which tables are captured."""

from typing import Protocol, TypeAlias

#: schema and name
TableName: TypeAlias = tuple[str, str]


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

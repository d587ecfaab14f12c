"""The definitions of tables that were emitted: rows refer to them by their fingerprints."""

from databus_changes.tables import TableName
from databus_core.events import Event, Table, TableDefinition


class Definitions:
    """Emits each table's definition before its first rows, and when it has changed."""

    def __init__(self) -> None:
        #: table → fingerprint of its last emitted definition
        self._last: dict[TableName, str] = {}
        #: fingerprint → table, of all emitted definitions
        self.emitted: dict[str, Table] = {}

    def emit(self, table: Table, out: list[Event]) -> None:
        """Emit a table's definition, unless it is the one that was emitted last for this table."""
        if not self.is_latest(table):
            self._last[table.schema, table.name] = table.fingerprint
            self.emitted[table.fingerprint] = table
            out.append(TableDefinition(table))

    def is_latest(self, table: Table) -> bool:
        """Return whether the definition that was emitted last for this table is this one."""
        return self._last.get((table.schema, table.name)) == table.fingerprint

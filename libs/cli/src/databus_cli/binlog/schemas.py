"""The tables behind rows and statements, as far as the files tell them."""

from collections.abc import Iterable

from sqlglot.errors import TokenError

from databus.errors import CannotApply
from databus.events import Action, Table
from databus_binlog import Flavor, FormatDescription, Query, TableMap
from databus_changes.ddl.apply import apply
from databus_changes.ddl.dialect import Dialect, prints_widths
from databus_changes.ddl.statement import Name, TableChange, read
from databus_changes.declared import described_by
from databus_changes.fitting import same_columns


class Schemas:
    """Follows the tables through the log: what a statement makes of them, or else what their rows' table maps say."""

    def __init__(self, head: FormatDescription) -> None:
        flavor = flavor_of(head)
        self._dialect = Dialect(flavor=flavor, integer_widths=prints_widths(flavor, head.server_version))
        self._tables: dict[Name, Table] = {}
        self._charsets: dict[str, str] = {}
        #: the last description of tables that are gone
        self._gone: dict[Name, Table] = {}
        self._by_map: dict[str, Table] = {}

    def behind(self, table_map: TableMap) -> Table:
        """Give the table of rows; display widths, secondary indexes and the like are known only of some."""
        table = self._by_map.get(table_map.fingerprint)
        if table is None:
            name, logged = (table_map.schema, table_map.name), described_by(table_map)
            known = self._tables.get(name)
            table = known if known is not None and same_columns(known, logged) else logged
            self._tables[name] = self._by_map[table_map.fingerprint] = table
        return table

    def follow(self, event: Query) -> list[tuple[TableChange, Table | None, Table | None]]:
        """Apply a statement, and give what it does to tables that last, with each as it was and as it is now.

        One that is gone is as it was, one that the files do not describe None. Unreadable text gives nothing.
        """
        self._by_map.clear()
        query = event.query.decode("utf-8", "surrogateescape")
        try:
            statement = read(query, event.schema)
        except TokenError:
            self._tables.clear()
            return []
        if statement.temporary:
            return []
        named = {change.table: change for change in reversed(statement.changes)}  # a swap of tables names some twice
        changes = {change.table: named[change.table] for change in statement.changes}
        if statement.dropped_schema is not None:
            dropped = [name for name in self._tables if name[0] == statement.dropped_schema]
            changes = {name: TableChange(Action.DROP, *name, query) for name in dropped}
        before = {name: self._tables.get(self._dialect.name(*name)) for name in changes}
        self._apply(query, event, changes)
        return [(change, before[name], self._table(name)) for name, change in changes.items()]

    def _apply(self, query: str, event: Query, named: Iterable[Name]) -> None:
        try:
            outcome = apply(query, event.schema, self._tables, self._charsets, self._dialect)
        except CannotApply:
            outcome = None
        if outcome is None or event.error_code:  # whose statement may have failed half way
            for name in named:
                self._forget(name)
            return
        for name, table in outcome.tables.items():
            self._keep(name, table)
        self._charsets |= {schema: charset for schema, charset in outcome.charsets.items() if charset is not None}

    def _table(self, name: Name) -> Table | None:
        name = self._dialect.name(*name)
        return self._tables.get(name) or self._gone.get(name)

    def _keep(self, name: Name, table: Table | None) -> None:
        old = self._tables.pop(name, None)
        self._gone.pop(name, None)
        if table is not None:
            self._tables[name] = table
        elif old is not None:
            self._gone[name] = old

    def _forget(self, name: Name) -> None:
        name = self._dialect.name(*name)
        self._tables.pop(name, None)
        self._gone.pop(name, None)


def flavor_of(head: FormatDescription) -> Flavor:
    """Tell whose file this is."""
    return "mariadb" if "mariadb" in head.server_version.lower() else "mysql"

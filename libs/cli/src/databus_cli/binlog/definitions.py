"""Definitions of tables from outside the binlog: from a file of SQL, or from a server."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from databus_binlog import FormatDescription, Query, TableMap
from databus_binlog.gtid import Flavor
from databus_changes.ddl.dialect import Dialect, prints_widths
from databus_changes.statements import StatementReader
from databus_changes.table_maps import readable
from databus_changes.tables import TableName
from databus_changes.tracker import TableTracker
from databus_core.events import Table
from databus_core.kafka_history import SchemaHistory

T = TypeVar("T")


class Definitions(Protocol):
    """A source of definitions."""

    def tracker(self, head: FormatDescription, tracks: Callable[[str], bool]) -> TableTracker:
        """Return a tracker that begins with the definitions. `head` is the FormatDescription of the first file."""
        ...


class NoDefinitions:
    """Knows nothing: definitions come from the binlog alone."""

    def tracker(self, head: FormatDescription, tracks: Callable[[str], bool]) -> TableTracker:
        """Return a tracker that begins without definitions."""
        return TableTracker(SchemaHistory(), _dialect(head), lookup=None, tracks=tracks)


class FileDefinitions:
    """The tables in a file of SQL, as they are when the first file begins."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tracker(self, head: FormatDescription, tracks: Callable[[str], bool]) -> TableTracker:
        """Return a tracker that begins with the file's definitions. Raises InvalidSettings."""
        from databus_cli.binlog.schema import read_schema

        dialect = _dialect(head)
        return TableTracker(read_schema(self._path, dialect), dialect, lookup=None, tracks=tracks)


class ServerDefinitions:
    """The tables of a server, as they are now: they are used for rows that they fit, also after DDL in the binlog."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._tables: dict[TableName, Table] = {(table.schema, table.name): table for table in tables}

    def tracker(self, head: FormatDescription, tracks: Callable[[str], bool]) -> TableTracker:
        """Return a tracker that begins with the server's definitions, and takes them again after DDL."""

        async def lookup(schema: str, name: str) -> Table | None:
            return self._tables.get((schema, name))

        return TableTracker(SchemaHistory(dict(self._tables)), _dialect(head), lookup=lookup, tracks=tracks)


class Known:
    """The definitions at the place up to which the binlog was read. Statements that are not understood are ignored."""

    def __init__(self, definitions: Definitions, head: FormatDescription) -> None:
        self._tracker = definitions.tracker(head, lambda schema: True)
        self._statements = StatementReader(_AllTables(), self._tracker, on_doubt=lambda doubt: None)

    def apply(self, event: Query) -> None:
        """Apply a statement."""
        if ddl := self._statements.read(event):
            result(self._tracker.apply(ddl.statement, ddl.tables, as_written=ddl.as_written))

    def describe(self, table_map: TableMap) -> TableMap:
        """Complete a table map if its table is known and fits."""
        described = self._tracker.describe(table_map)
        # rows of a table that does not fit must not be read with what was assumed to make them readable
        return table_map if described == readable(table_map) else described


class _AllTables:
    """Captures all tables."""

    def captures(self, schema: str, table: str) -> bool:
        return True

    def captures_some(self, schema: str) -> bool:
        return True

    def mentions_some(self, text: str) -> bool:
        return True


def flavor_of(head: FormatDescription) -> Flavor:
    """Return which kind of server wrote the file."""
    return "mariadb" if "mariadb" in head.server_version.lower() else "mysql"


def result(coroutine: Coroutine[None, None, T]) -> T:
    """Run a coroutine that never suspends: tables are looked up in memory."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        value: T = finished.value
        return value
    raise AssertionError("the translation of a binlog was suspended")


def _dialect(head: FormatDescription) -> Dialect:
    flavor = flavor_of(head)
    return Dialect(flavor=flavor, integer_widths=prints_widths(flavor, head.server_version))

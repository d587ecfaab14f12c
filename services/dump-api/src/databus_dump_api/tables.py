"""Select the tables of a dump, apply their publishing rule, and detect changes of their definition.

A dump contains exactly the columns, rows and values that the rule of output `default` publishes for a table. So a
dump cannot reveal data that the rule hides, and a table that this output does not publish is in no dump.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from databus_changes.catalog import Queries, read_table, read_tables
from databus_core.errors import SchemaMismatch, SourceNotReady
from databus_core.events import Row, Table
from databus_core.settings import Settings
from databus_core.settings.rules import Rule, default_rule
from databus_core.table_filter import TableFilter
from databus_dump_api.problems import UnknownTables
from databus_messages.routing.filter import filter_of

_FACTS = """
SELECT t.engine, e.transactions, t.create_time, t.table_rows
FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = %s AND t.table_name = %s"""


async def find_tables(session: Queries, settings: Settings, patterns: Sequence[str] | None) -> tuple[Table, ...]:
    """Find the published tables that match `patterns` (None: all). Raises UnknownTables if a pattern matches none."""
    # Many patterns and tables would keep the event loop busy for seconds.
    return await asyncio.to_thread(_select, await read_tables(session), settings, patterns)


def _select(tables: Iterable[Table], settings: Settings, patterns: Sequence[str] | None) -> tuple[Table, ...]:
    published = [table for table in tables if publishing_rule(settings, table)]
    wanted = TableFilter(["*.*"] if patterns is None else patterns)
    if unmatched := wanted.unmatched((table.schema, table.name) for table in published):
        raise UnknownTables(
            f"no captured and published table matches {', '.join(unmatched)}: "
            "check the name, source.include, source.exclude and publisher.routes, and the user's SELECT privilege"
        )
    return tuple(table for table in published if wanted.matches(table.schema, table.name))


def publishing_rule(settings: Settings, table: Table) -> Rule | None:
    """Return the rule by which output `default` publishes a table; None if the table is not captured or published."""
    if not settings.source.captures(table.schema, table.name):
        return None
    return default_rule(settings.publisher.rules, table.schema, table.name)


def table_topics(settings: Settings, table: Table) -> set[str]:
    """Return a set with the topic of a table's changes; an empty set if the table is not published."""
    rule = publishing_rule(settings, table)
    return {rule.topic_of(settings.name, table.schema, table.name)} if rule else set()


class PublishedTable:
    """A table as output `default` publishes it: without the columns, rows and values that its rule hides."""

    def __init__(self, settings: Settings, rule: Rule, table: Table) -> None:
        """Apply the rule to the table. Raises InvalidSettings if the rule does not fit the table."""
        self._filter = filter_of(rule, table, settings.publisher.salt.get_secret_value().encode())
        #: the table with its published columns only
        self.table = self._filter.table if self._filter else table
        #: whether the value text is that of the `databus` format with `compat: strict`
        self.strict = rule.format == "databus" and rule.options.get("compat") == "strict"

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the published part of these rows."""
        return self._filter.rows(rows) if self._filter else rows


@dataclass(frozen=True)
class TableState:
    """A table's definition at one moment. Equal states mean the same, unaltered table."""

    table: Table
    #: creation time: differs if the table was replaced by another one of the same name
    created: str
    #: the server's estimate; it changes with every row
    estimated_rows: int = field(compare=False)


async def read_state(session: Queries, table: Table) -> TableState:
    """Read a table's current definition.

    Raises SchemaMismatch if the table is gone, and SourceNotReady if its engine has no consistent snapshots.
    """
    found = await read_table(session, table.schema, table.name)
    facts = await session.query(_FACTS, (table.schema, table.name))
    if found is None or not facts:
        raise SchemaMismatch(f"table {table.full_name} no longer exists; request a new dump")
    ((engine, transactions, created, rows),) = facts
    if transactions != "YES":
        raise SourceNotReady(
            f"table {table.full_name} uses storage engine {engine}, which has no consistent snapshots: "
            f"ALTER TABLE {table.full_name} ENGINE=InnoDB, or exclude it with source.exclude"
        )
    return TableState(found, str(created), int(rows or 0))


async def require_unchanged(session: Queries, state: TableState) -> None:
    """Raise SchemaMismatch if the table's definition has changed."""
    if await read_state(session, state.table) != state:
        raise SchemaMismatch(f"table {state.table.full_name} was changed by DDL during the dump; request a new dump")

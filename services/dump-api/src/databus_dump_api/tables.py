"""Which tables a dump is of, and whether they have stayed what they were."""

from collections.abc import Sequence
from dataclasses import dataclass

from databus.errors import SchemaMismatch, SourceNotReady
from databus.events import Table
from databus.settings import Settings
from databus.table_filter import TableFilter
from databus_changes.catalog import Queries, read_table, read_tables
from databus_dump_api.content import rule_of
from databus_dump_api.problems import UnknownTables

_FACTS = """
SELECT t.engine, e.transactions, t.create_time
FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = %s AND t.table_name = %s"""


@dataclass(frozen=True)
class Definition:
    """A table as it is at some moment; two that are equal are of one and the same table, unchanged."""

    table: Table
    #: tells a table from another one that has taken its name since
    created: str


async def resolve(session: Queries, settings: Settings, patterns: Sequence[str] | None) -> tuple[Table, ...]:
    """Find the published tables that match, all of them without patterns. Raises UnknownTables."""
    published = [table for table in await read_tables(session) if rule_of(settings, table)]
    wanted = TableFilter(["*.*"] if patterns is None else patterns)
    if unmatched := wanted.unmatched((table.schema, table.name) for table in published):
        raise UnknownTables(
            f"no captured and published table matches {', '.join(unmatched)}: "
            "check the name, source.include, source.exclude and publisher.routes, and the user's SELECT privilege"
        )
    return tuple(table for table in published if wanted.matches(table.schema, table.name))


async def define(session: Queries, table: Table) -> Definition:
    """Read a table's definition as it is now. Raises SchemaMismatch if it is gone."""
    name = f"{table.schema}.{table.name}"
    found = await read_table(session, table.schema, table.name)
    facts = await session.query(_FACTS, (table.schema, table.name))
    if found is None or not facts:
        raise SchemaMismatch(f"{name} does not exist any more; request a new dump")
    ((engine, transactions, created),) = facts
    if transactions != "YES":
        raise SourceNotReady(
            f"{name} is stored by {engine}, which knows no consistent view: ALTER TABLE {name} ENGINE=InnoDB, "
            "or leave it out with source.exclude"
        )
    return Definition(found, str(created))


async def require_unchanged(session: Queries, definition: Definition) -> None:
    """Raise SchemaMismatch if the table is not what it was."""
    if await define(session, definition.table) != definition:
        table = definition.table
        raise SchemaMismatch(f"{table.schema}.{table.name} was changed by DDL during the dump; request a new dump")

"""Which tables of a database the account may read."""

from databus_binlog.errors import MissingPrivilege, ServerRefused
from databus_changes.catalog import Queries
from databus_changes.tables import TableName, quoted_name
from databus_core.errors import SourceNotReady
from databus_core.events import Table, first_names
from databus_core.settings import Source
from databus_core.table_filter import TableFilter, sample


async def require_select(session: Queries, source: Source, tables: list[Table], host: str) -> None:
    """Raise SourceNotReady, with a line for each pattern of `source.include` whose tables the account may not read.

    A server hides tables from an account without a privilege on them. But it reports a missing privilege before a
    missing table. So for each pattern a name that matches it is tried, and only if that is refused, the tables that are
    seen, because each of them may have a grant of its own.
    """
    faults: list[str] = []
    for pattern in source.include:
        if await may_select(session, sample(pattern)):
            continue
        names = [(table.schema, table.name) for table in tables]
        matching = [name for name in names if TableFilter([pattern]).matches(*name)]
        refused = [".".join(name) for name in matching if not await may_select(session, name)]
        if refused or not matching:
            named = first_names(refused) or pattern
            faults.append(f"database {host}: user {source.user!r} lacks SELECT on {named}: grant it")
    if faults:
        raise SourceNotReady("\n".join(faults))


async def may_select(session: Queries, name: TableName) -> bool:
    """Return whether the account may read a table, which need not exist."""
    try:
        await session.query(f"SELECT * FROM {quoted_name(name)} LIMIT 0")  # noqa: S608
    except MissingPrivilege:
        return False
    except ServerRefused:  # there is no such table
        return True
    return True

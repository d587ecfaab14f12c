"""Narrows a doubt about DML that was logged as a statement, from whole schemas to the tables that it changed.

The statement names its targets. Only the server knows what else it changes: a target may be a view, or have triggers or
children by foreign keys.
"""

from collections.abc import Iterable
from dataclasses import replace

from databus_changes.cascades import read_cascades
from databus_changes.catalog import Queries
from databus_changes.doubts import Doubt, rows_not_logged
from databus_changes.tables import CapturedTables, TableName

#: a view has no engine
_ENGINE = "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
#: engines whose tables have the rows themselves, unlike MERGE or FEDERATED
_ENGINES = {"innodb", "myisam", "aria", "memory", "rocksdb"}
_TRIGGERS = """
SELECT COUNT(*) FROM information_schema.triggers WHERE event_object_schema = %s AND event_object_table = %s"""
#: An account sees the triggers of tables on which it has the privilege TRIGGER. Privileges by roles are not counted.
_MAY_SEE_TRIGGERS = """
SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER' AND grantee = %s
UNION SELECT 1 FROM information_schema.schema_privileges
WHERE privilege_type = 'TRIGGER' AND grantee = %s AND %s LIKE table_schema
UNION SELECT 1 FROM information_schema.table_privileges
WHERE privilege_type = 'TRIGGER' AND grantee = %s AND table_schema = %s AND table_name = %s"""


async def narrowed(doubt: Doubt, session: Queries, captured: CapturedTables) -> Doubt:
    """Return the doubt with exactly the tables that may have changed, or as it is if the server does not show them.

    The tables are the targets of the statement and their children by foreign keys. All of them have to be base tables
    without triggers; to prove the latter, the account needs TRIGGER on them.

    The server shows its present state: the statements in its binlog after this one must not have dropped a trigger or
    a foreign key of these tables, or replaced a view by a table.
    """
    if not doubt.targets:
        return doubt
    cascades = await read_cascades(session)
    tables = set(doubt.targets)
    for target in doubt.targets:
        tables |= cascades.deleted(target) | cascades.updated(target)
    if not await _are_plain(session, tables):
        return doubt
    found = frozenset(table for table in tables if captured.captures(*table))
    return replace(doubt, text=rows_not_logged(found, doubt.file, doubt.offset), tables=found, schemas=frozenset())


async def _are_plain(session: Queries, tables: Iterable[TableName]) -> bool:
    """Return whether these are base tables, and certainly have no triggers."""
    [(account,)] = await session.query("SELECT CURRENT_USER()")
    user, _, host = str(account).rpartition("@")
    grantee = f"'{user}'@'{host}'"
    if any(str(grant).startswith("REVOKE ") for (grant,) in await session.query("SHOW GRANTS")):
        return False
    for schema, name in tables:
        engines = await session.query(_ENGINE, (schema, name))
        if [str(engine).lower() in _ENGINES for (engine,) in engines] != [True]:
            return False
        args = grantee, grantee, schema, grantee, schema, name
        if not await session.query(_MAY_SEE_TRIGGERS, args) or await session.query(_TRIGGERS, (schema, name)) != [(0,)]:
            return False
    return True

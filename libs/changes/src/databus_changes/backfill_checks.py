"""What the database refuses of a request for backfills: tables, privileges, conditions, and tables without a key."""

from databus_binlog.errors import MissingPrivilege, ServerRefused, TimeLimitReached
from databus_binlog.position import release
from databus_binlog.session import Session
from databus_changes.backfill_tables import MAX_WHERE, BackfillRequest, Selection
from databus_changes.captured import may_select
from databus_changes.tables import TableName, quoted_name
from databus_core.events import Table, full_name
from databus_core.settings import Settings

_SIZE = "SELECT data_length FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"

#: how long the check of one condition may take
_CHECK_SECONDS = 5
#: A text that is valid in both is one expression. The second has no `(` that a `)` of the text could close. So in the
#: first, the text cannot leave the parentheses, by a `)` or by a comment: no `)` would be left to close them.
_FORMS = ("({})", "CASE WHEN {} THEN 1 END")


async def source_faults(session: Session, settings: Settings, found: Selection, wanted: BackfillRequest) -> list[str]:
    """List what the database refuses, one line each."""
    await _prepare(session)
    user = settings.source.user
    faults = []
    for name in found.unseen:
        hidden = not await may_select(session, name)
        faults.append(_no_select(user, name) if hidden else f"table {full_name(*name)} does not exist: check the name")
    for name, table in found.tables.items():
        if not await may_select(session, name):
            faults.append(_no_select(user, name))
            continue
        if wanted.where and len(wanted.where) <= MAX_WHERE and (why := await _refusal(session, name, wanted.where)):
            faults.append(f"table {table.full_name}: the condition is refused: {why}")
        if not wanted.any_size and (why := await _too_large(session, table, settings.backfill.keyless_limit)):
            faults.append(why)
    return faults


async def _prepare(session: Session) -> None:
    """Make conditions mean the same on every server, and MySQL read sizes of tables that are not a day old.

    Limit the time of a check: a condition may wait for a lock, and MariaDB evaluates what is constant in it.
    """
    await session.query("SET SESSION sql_mode = ''")
    version = release(session.server.version)
    if session.server.flavor == "mariadb":
        await session.query(f"SET SESSION max_statement_time = {_CHECK_SECONDS}")
    elif version >= (5, 7, 8):
        await session.query(f"SET SESSION max_execution_time = {_CHECK_SECONDS * 1000}")
    if session.server.flavor == "mysql" and version >= (8, 0):
        await session.query("SET SESSION information_schema_stats_expiry = 0")


def _no_select(user: str, name: TableName) -> str:
    return f"user {user!r} lacks SELECT on {full_name(*name)}: grant it"


async def _refusal(session: Session, name: TableName, where: str) -> str:
    """Return why the server refuses a condition on a table; empty if it is an expression that it can evaluate.

    PREPARE accepts no second statement after a `;`, which a query does. With LIMIT 0, MySQL evaluates nothing.
    """
    statement = f"SELECT 1 FROM {quoted_name(name)} WHERE "  # noqa: S608 - the name is quoted
    try:
        for form in _FORMS:
            await session.query("PREPARE databus_condition FROM %s", (statement + form.format(where),))
        await session.query(f"EXPLAIN {statement}{_FORMS[0].format(where)} LIMIT 0")
    except TimeLimitReached:
        return (
            f"the server has not checked it within {_CHECK_SECONDS} s: another session may lock a table that it reads, "
            "or it takes long to evaluate; try again later, or simplify it"
        )
    except (MissingPrivilege, ServerRefused) as error:
        return " ".join(str(error).split())
    return ""


async def _too_large(session: Session, table: Table, limit: int) -> str:
    """Return why a table without a usable key is not loaded; empty if it is small or has a key."""
    if table.row_key:
        return ""
    size = sum(int(size or 0) for (size,) in await session.query(_SIZE, (table.schema, table.name)))
    if size <= limit:
        return ""
    return (
        f"table {table.full_name} has no usable key and {size / 2**20:.0f} MiB, more than backfill.keyless_limit: the "
        "stream would wait while it is loaded; add a key, or allow any size (--any-size)"
    )

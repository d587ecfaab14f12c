"""Check that a host of the database can be dumped."""

from functools import partial

from databus_binlog.session import Session
from databus_changes.captured import captured_tables, require_select
from databus_changes.snapshot.view import needs_lock
from databus_core.checks import run_all
from databus_core.settings import Settings
from databus_core.settings.topic_claims import require_topics
from databus_core.source_connection import check_host
from databus_messages.routing.filter import require_fit


async def check_source(settings: Settings, host: str) -> None:
    """Check that a host can be dumped: its grants, and that the captured tables can be read and have topics."""
    await check_host(settings.source, host, Session.log_status, _check_lock, partial(_check_tables, settings, host))


async def _check_lock(session: Session) -> None:
    """Flush a table that does not exist: this needs the same privilege as the lock, if dumps take it."""
    if await needs_lock(session):
        await session.query("FLUSH LOCAL TABLES `mysql`.`databus_check`", grant="RELOAD")


async def _check_tables(settings: Settings, host: str, session: Session) -> None:
    tables = await captured_tables(session, settings.source, host)
    salt = settings.publisher.salt.get_secret_value().encode()
    await run_all(
        partial(require_select, session, settings.source, tables, host),
        partial(require_topics, settings, [(table.schema, table.name) for table in tables]),
        partial(require_fit, settings.publisher.rules, tables, salt),
    )

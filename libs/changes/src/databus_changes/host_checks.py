"""Checks of a host of the database: what dumps need, and what all users of a host have in common."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from databus_binlog.session import Session
from databus_changes.captured import require_select
from databus_changes.catalog import read_tables
from databus_changes.snapshot.view import needs_lock
from databus_core.checks import Check, Result, Warned, results
from databus_core.events import Table
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.settings.topic_claims import require_topics
from databus_core.source_connection import connect_source, source_errors
from databus_core.table_filter import TableFilter


@dataclass
class Host:
    """A session with a host, and what its checks have in common."""

    settings: Settings
    #: as `source.hosts` has it
    address: str
    session: Session
    #: how far the pipeline has published; None: not at all, or it is not known
    progress: Progress | None = None
    _seen: list[Table] = field(default_factory=list)

    async def seen(self) -> list[Table]:
        """Read all tables that the account sees."""
        self._seen = self._seen or await read_tables(self.session)
        return self._seen

    async def captured(self) -> list[Table]:
        """Read the captured tables that the account sees."""
        return [table for table in await self.seen() if self.settings.source.captures(table.schema, table.name)]


async def host_results(
    settings: Settings, address: str, checks: Sequence[Check[Host]], progress: Progress | None = None
) -> list[Result]:
    """Log in to a host and make checks."""
    connection = _connect(settings, address, progress)
    return await results(f"database {address}", connection, [_SERVER, *checks], partial(source_errors, address))


@asynccontextmanager
async def _connect(settings: Settings, address: str, progress: Progress | None) -> AsyncIterator[Host]:
    async with connect_source(settings.source, address) as session:
        yield Host(settings, address, session, progress)


async def _server(host: Host) -> str:
    server = host.session.server
    return f"{ {'mariadb': 'MariaDB', 'mysql': 'MySQL'}[server.flavor] } {server.version}"


async def _client(host: Host) -> str:
    await host.session.log_status()
    return "granted"


async def _reload(host: Host) -> str:
    """Flush a table that does not exist: this needs the same privilege as the lock, if dumps take it."""
    if not await needs_lock(host.session):
        return "not needed: no lock is taken"
    await host.session.query("FLUSH LOCAL TABLES `mysql`.`databus_check`", grant="RELOAD")
    return "granted"


async def _select(host: Host) -> str:
    await require_select(host.session, host.settings.source, tables := await host.captured(), host.address)
    return f"granted on {len(tables)} captured tables"


async def _include(host: Host) -> str:
    source, seen = host.settings.source, [(table.schema, table.name) for table in await host.seen()]
    if unmatched := TableFilter(source.include).unmatched(seen):
        raise Warned(
            "\n".join(
                f"database {host.address}: source.include: {pattern} matches no table that user {source.user!r} can see"
                for pattern in unmatched
            )
        )
    return f"{len(await host.captured())} of {len(seen)} tables are captured"


async def _topics(host: Host) -> str:
    require_topics(host.settings, [(table.schema, table.name) for table in await host.captured()])
    return "each captured table has one"


_SERVER = Check("server", _server)
CLIENT = Check("REPLICATION CLIENT", _client)
RELOAD = Check("RELOAD", _reload)
SELECT = Check("SELECT", _select)
TABLES = (Check("source.include", _include), Check("names of topics", _topics))
#: what dumps need
DUMP_CHECKS = (CLIENT, RELOAD, SELECT, *TABLES)

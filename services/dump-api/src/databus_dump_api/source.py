"""Connections to the database for dumps: to the host that the pipeline reads, if the progress names it.

A snapshot contains everything that is in its server's binlog, and Kafka was filled from that binlog. Another host may
lag behind. Its dump would lack changes that Kafka already has, and consumers, which read only later ones, would not
get them at all.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from asyncmy.constants import ER
from asyncmy.errors import MySQLError

from databus.checks import run_all
from databus.errors import SchemaMismatch, SourceNotReady, SourceUnavailable
from databus.progress import Progress
from databus.settings import Settings, Source
from databus.settings.topic_claims import require_topics
from databus.source_connection import check_host, connect_source
from databus_binlog.errors import from_server
from databus_binlog.session import Session
from databus_changes.captured import captured_tables, require_select
from databus_messages.routing.filter import require_fit

#: seconds without an answer after which a server counts as gone; a SELECT may wait for DDL
_ANSWER_SECONDS = 300.0


@asynccontextmanager
async def connect_pipeline_host(source: Source, progress: Progress | None) -> AsyncIterator[tuple[str, Session]]:
    """Log in to the server that the progress names, or to the first host that answers if the progress names none.

    Yields the host and the session. Errors of the session leave the block as in `connect_source`. Raises
    SourceUnavailable also while the reader is failing over to another host, and SourceNotReady if no host is set up for
    dumps.
    """
    async with AsyncExitStack() as connections:
        yield await _find_host(source, progress.server if progress else "", connections)


async def _find_host(source: Source, server: str, connections: AsyncExitStack) -> tuple[str, Session]:
    failures: list[SourceUnavailable | SourceNotReady] = []
    for host in source.hosts:
        try:
            async with AsyncExitStack() as attempt:
                session = await attempt.enter_async_context(connect_source(source, host))
                if server in ("", session.server.identity):
                    connections.push_async_exit(attempt.pop_all())
                    return host, session
                text = f"database {host}: it is not the server that the pipeline reads ({server})"
                failures.append(SourceUnavailable(text, host))
        except (SourceUnavailable, SourceNotReady) as error:
            failures.append(error)
    final = all(isinstance(error, SourceNotReady) for error in failures)
    raise (SourceNotReady if final else SourceUnavailable)("; ".join(map(str, failures)))


async def check_source(settings: Settings, host: str) -> None:
    """Check that a host can be dumped: its grants, and that the captured tables can be read and have topics."""
    await check_host(settings.source, host, Session.log_status, _check_lock, partial(_check_tables, settings, host))


async def _check_lock(session: Session) -> None:
    """Flush a table that does not exist: on MySQL, this needs the same privilege as the lock that a dump takes."""
    if session.server.flavor == "mysql":
        await session.query("FLUSH LOCAL TABLES `mysql`.`databus_check`", grant="RELOAD")


async def _check_tables(settings: Settings, host: str, session: Session) -> None:
    tables = await captured_tables(session, settings.source, host)
    salt = settings.publisher.salt.get_secret_value().encode()
    await run_all(
        partial(require_select, session, settings.source, tables, host),
        partial(require_topics, settings, [(table.schema, table.name) for table in tables]),
        partial(require_fit, settings.publisher.rules, tables, salt),
    )


async def execute(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement on an asyncmy connection and return its rows."""
    async with answering(), connection.cursor() as cursor:
        await cursor.execute(statement)
        return list(await cursor.fetchall())


@asynccontextmanager
async def answering() -> AsyncIterator[None]:
    """Limit the wait for a server's answer: a host that has vanished sends none. Raises SourceUnavailable.

    Afterwards the connection cannot be used.
    """
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            yield
    except TimeoutError as error:
        text = f"the database has sent nothing for {_ANSWER_SECONDS:g} s: check the server and long DDL statements"
        raise SourceUnavailable(f"{text}, then request a new dump") from error


@contextmanager
def server_errors(user: str, grant: str) -> Iterator[None]:
    """Turn asyncmy's errors into those of a `Session`, or into SchemaMismatch if DDL changed a table.

    `grant` is the privilege that the statements need.
    """
    try:
        yield
    except MySQLError as error:
        code, message = error.args if len(error.args) == 2 else (0, error)
        if code == ER.TABLE_DEF_CHANGED:
            raise SchemaMismatch("a table was changed by DDL during the dump; request a new dump") from error
        raise from_server(code, str(message), user=user, grant=grant) from error

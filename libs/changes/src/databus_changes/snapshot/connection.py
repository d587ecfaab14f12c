"""Sessions that read rows in canonical value text."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from databus_binlog.session import Session
from databus_core.settings import Source
from databus_core.source_connection import connect_source

#: seconds without an answer after which a server counts as gone; a SELECT may wait for DDL
_ANSWER_SECONDS = 300.0
#: seconds that the server waits for us to read its rows
_WRITE_TIMEOUT = 3600

_SETTINGS = (
    "SET NAMES utf8mb4",
    f"SET SESSION time_zone = '+00:00', sql_mode = '', net_write_timeout = {_WRITE_TIMEOUT}",
    # With READ COMMITTED the server would silently open no snapshot.
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)
_NO_TIME_LIMIT = {
    "mariadb": "SET SESSION max_statement_time = 0",
    "mysql": "SET SESSION max_execution_time = 0",
}


@asynccontextmanager
async def connect_snapshot(source: Source, host: str) -> AsyncIterator[Session]:
    """Log in to a host, with the session variables that read views and `select` need.

    The session runs one statement after another: `query`, and `select`, which yields packed rows. Inside the block its
    errors are those of `databus_binlog.errors`; they leave the block as SourceUnavailable or a FatalError.
    """
    async with connect_source(source, host, query_timeout=_ANSWER_SECONDS) as session:
        for statement in (*_SETTINGS, _NO_TIME_LIMIT[session.server.flavor]):
            await session.query(statement)
        yield session

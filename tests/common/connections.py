"""Connections to databases: those that run statements, and sessions that read the binlog."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncmy

from databus_binlog import Login
from databus_binlog.session import Session, connect
from devstack import Kind, Server

Execute = Callable[..., Awaitable[None]]
Print = Callable[[str], Awaitable[list[list[bytes | None]]]]
Connect = Callable[..., AbstractAsyncContextManager[Session]]

#: statements that empty a server's log
RESET: dict[Kind, str] = {"mariadb": "RESET MASTER", "mysql": "RESET BINARY LOGS AND GTIDS"}


def session_on(server: Server, **options: Any) -> AbstractAsyncContextManager[Session]:
    """Connect to a server with its account; `options` override or add single fields of the `Login`."""
    return connect(Login(**(_account(server) | options)))


def _account(server: Server) -> dict[str, Any]:
    return {"host": server.host, "port": server.port, "user": server.user, "password": server.password}


@asynccontextmanager
async def _cursors(server: Server, **options: object) -> AsyncIterator[Callable[[], Any]]:
    async with await asyncmy.connect(**_account(server), autocommit=True, **options) as connection:
        yield connection.cursor


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Execute]:
    """A connection that runs statements, each committed by itself."""
    async with _cursors(server) as open_cursor:

        async def run(statement: str, *args: object) -> None:
            async with open_cursor() as cursor:
                await cursor.execute(statement, args or None)

        yield run


@asynccontextmanager
async def printing(server: Server) -> AsyncIterator[Print]:
    """A connection that returns each cell as the bytes that the server prints: text in UTF-8, timestamps in UTC.

    Its sql_mode is empty, so the server accepts zero dates and the like.
    """
    async with _cursors(server, use_unicode=False, conv={}) as open_cursor:

        async def run(statement: str) -> list[list[bytes | None]]:
            async with open_cursor() as cursor:
                await cursor.execute(statement)
                return [list(row) for row in await cursor.fetchall()]

        await run("SET sql_mode = '', time_zone = '+00:00'")
        yield run

"""What the tests of several levels use: a connection that runs statements, a consumer that reads changes."""

import asyncio
import json
import secrets
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncmy
from aiokafka import AIOKafkaConsumer

from databus_binlog import Event, EventStream, Login, Position, Rows, TableMap, Value, Xid
from databus_binlog.session import Session, connect
from devstack import Kind, Server
from devstack.pipeline import Pipeline

Execute = Callable[..., Awaitable[None]]
Print = Callable[[str], Awaitable[list[list[bytes | None]]]]
MakePipeline = Callable[..., Pipeline]
Connect = Callable[..., AbstractAsyncContextManager[Session]]

#: what makes a server's log empty
RESET: dict[Kind, str] = {"mariadb": "RESET MASTER", "mysql": "RESET BINARY LOGS AND GTIDS"}


def session_on(server: Server, **otherwise: Any) -> AbstractAsyncContextManager[Session]:
    """Connect to a server, as its account but for what is told otherwise."""
    return connect(Login(**(_account(server) | otherwise)))


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
    """A connection that gives every cell as the bytes the server prints, in UTF-8 and UTC; it takes any value."""
    async with _cursors(server, use_unicode=False, conv={}) as open_cursor:

        async def run(statement: str) -> list[list[bytes | None]]:
            async with open_cursor() as cursor:
                await cursor.execute(statement)
                return [list(row) for row in await cursor.fetchall()]

        await run("SET sql_mode = '', time_zone = '+00:00'")
        yield run


async def read_rows(
    server: Server, start: Position, schema: str, describe: Callable[[TableMap], TableMap] | None = None
) -> list[tuple[TableMap, Rows]]:
    """Read the rows of a schema from a position to the end of the log."""
    async with session_on(server) as session:
        stream = await session.dump(
            start,
            server_id=secrets.randbelow(2**31) + 1000,
            follow=False,
            wanted=lambda name, _: name == schema,
            describe=describe,
        )
        return [
            (events.tables[event.table], event)
            async for events in stream
            for event in events
            if isinstance(event, Rows)
        ]


def ids(events: Iterable[Event]) -> list[Value]:
    """Return the first value of each row image."""
    return [image[0] for event in events if isinstance(event, Rows) for image in event.images()]


async def until(stream: EventStream, last: bytes) -> list[Event]:
    """Read until the commit of the row with this id."""
    seen: list[Event] = []
    async with asyncio.timeout(20):
        async for events in stream:
            seen += events
            if last in ids(seen) and any(isinstance(event, Xid) for event in events):
                break
    return seen


class Changes:
    """Reads a pipeline's topics as a consumer with `read_committed` does."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    async def until(self, count: int) -> list[dict[str, Any]]:
        """Read until `count` messages have come; each is its value with `Pos` of its key, cells decoded to text."""
        found: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(60):
                while len(found) < count:
                    for records in (await self._consumer.getmany(timeout_ms=500)).values():
                        found += [decoded(record) for record in records]
        except TimeoutError as error:
            raise AssertionError(f"{len(found)} of {count} messages came: {found}") from error
        return found


def decoded(record: Any) -> dict[str, Any]:
    message = json.loads(record.value)
    message["Key"] = json.loads(record.key)
    message["Partition"] = record.partition
    if "Rows" in message:
        message["Rows"] = [[None if c is None else b64decode(c) for c in row] for row in message["Rows"]]
    elif "Query" in message:
        message["Query"] = b64decode(message["Query"]).decode()
    return message


Consume = Callable[..., Awaitable[Changes]]


async def run_until_idle(pipeline: Pipeline) -> None:
    """Publish what is in the binlog now: reader and publisher run with `--until-idle`, and each must end with 0."""
    programs = [Path(sys.executable).with_name(f"databus-{service}") for service in ("reader", "publisher")]
    processes = [
        await asyncio.create_subprocess_exec(program, "--config", pipeline.config, "--until-idle")
        for program in programs
    ]
    try:
        async with asyncio.timeout(120):
            for process in processes:
                assert await process.wait() == 0
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def cancelled(task: "asyncio.Task[Any]") -> None:
    """Cancel a task until it has ended, as the services' runtime does: a client that is connecting may lose one."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=5)

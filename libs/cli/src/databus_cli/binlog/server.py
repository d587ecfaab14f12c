"""Read the binlog of a server as a replica does, and the definitions of its tables."""

from __future__ import annotations

import argparse
import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Unpack

from pydantic import ValidationError

from databus_binlog import (
    AnyEvent,
    Events,
    FormatDescription,
    GtidSet,
    Heartbeat,
    InvalidPosition,
    Login,
    Position,
    Rotate,
    TableMap,
)
from databus_binlog.locate_time import file_at
from databus_binlog.session import Session, connect
from databus_changes.catalog import read_tables
from databus_cli.arguments.binlog import Offset
from databus_cli.binlog.definitions import ServerDefinitions
from databus_cli.binlog.files import DecoderOptions
from databus_core.errors import UsageError
from databus_core.settings import Source, load

_FIRST_EVENT = 4
_PORT = 3306


def login_of(options: argparse.Namespace, host: str | None) -> Login:
    """Return the login for a host, by default the configuration's first. Raises UsageError and InvalidSettings."""
    if options.config:
        if options.user or options.password_file:
            raise UsageError("--config has the account: remove --user and --password-file, or --config")
        source = load(options.config).source
        return source.login(_with_port(host) if host else source.hosts[0])
    given = {"hosts": [_with_port(host or "")], "user": options.user, "password_file": options.password_file}
    try:
        return Source.model_validate({key: value for key, value in given.items() if value}).login(given["hosts"][0])
    except ValidationError as error:
        [fault, *_] = error.errors()
        raise UsageError(f"{host}: {fault['msg'].removeprefix('Value error, ')}") from error


def definitions_of(login: Login) -> ServerDefinitions:
    """Read the definitions of all tables that the account sees."""

    async def read() -> ServerDefinitions:
        async with connect(login) as session:
            return ServerDefinitions(await read_tables(session))

    return asyncio.run(read())


def read_server(
    login: Login,
    files: Sequence[str],
    *,
    start: Offset | str | None,
    since: int | None,
    follow: bool,
    skip_head: Callable[[FormatDescription], None],
    idle: Callable[[], None],
    count: Callable[[int], None],
    **options: Unpack[DecoderOptions],
) -> Iterator[tuple[AnyEvent, Mapping[str, TableMap]]]:
    """Decode the binlog of a server, like `read_files`.

    With `files`, from the first to the last of them; else from `start` or from the file that has the time `since`, to
    the end of the log. `follow`: continue there, after `idle` was called. Table maps are decoded before the events
    before them are yielded, so `skip_head` is called first, with the server's version. Raises BinlogError.
    """
    last = files[-1] if files else None
    with asyncio.Runner() as runner:
        position, version = runner.run(_position(login, files, start, since))
        skip_head(FormatDescription(0, 0, position.file, 0, _FIRST_EVENT, version, checksum=False))
        stream = _stream(login, position, follow=follow, **options)
        try:
            while (received := runner.run(_next(stream))) is not None:
                events, drained = received
                count(len(events.data))
                for event in events:
                    if isinstance(event, Rotate) and not (event.artificial or follow) and event.file == last:
                        return
                    if not isinstance(event, Heartbeat) and not (isinstance(event, Rotate) and event.artificial):
                        yield event, events.tables
                if drained:
                    idle()
        finally:
            runner.run(stream.aclose())


async def _next(stream: AsyncGenerator[tuple[Events, bool], None]) -> tuple[Events, bool] | None:
    return await anext(stream, None)


async def _stream(
    login: Login, position: Position, *, follow: bool, **options: Unpack[DecoderOptions]
) -> AsyncGenerator[tuple[Events, bool], None]:
    """Yield the events, and whether the next ones have not arrived yet."""
    async with connect(login) as session:
        stream = await session.dump(
            position,
            server_id=_server_id(),
            follow=follow,
            statements=True,
            wanted=options.get("wanted"),
            describe=options.get("describe"),
            row_limit=options.get("row_limit"),
        )
        async for events in stream:
            yield events, stream.drained


async def _position(
    login: Login, files: Sequence[str], start: Offset | str | None, since: int | None
) -> tuple[Position, str]:
    """Return where to start, and the server's version."""
    async with connect(login) as session:
        file, offset = await _start(session, login, files, start, since)
        return Position(file=file, offset=offset), session.server.version


async def _start(
    session: Session, login: Login, files: Sequence[str], start: Offset | str | None, since: int | None
) -> tuple[str, int]:
    logs = list(await session.logs())
    for file in (*files, *([start.file] if isinstance(start, Offset) and start.file else [])):
        if file not in logs:
            raise InvalidPosition(f"the server has no file {file} (its log is {logs[0]} to {logs[-1]})")
    if isinstance(start, Offset):
        return start.file or files[0], start.offset
    if files:
        return files[0], _FIRST_EVENT
    if start is not None:
        return await _file_with(session, logs, start), _FIRST_EVENT
    if since is not None:
        return await file_at(login, since, server_id=_server_id()), _FIRST_EVENT
    end = await session.current_position()
    return end.file, end.offset


async def _file_with(session: Session, logs: Sequence[str], gtid: str) -> str:
    """Return the file that has a transaction, if the log has it: the last one that begins before it."""
    for file in reversed(logs):
        try:
            if gtid not in GtidSet.parse(session.server.flavor, await session.gtids_before(file)):
                return file
        except ValueError as error:
            raise InvalidPosition(f"{gtid} is no GTID of a {session.server.flavor} server") from error
    raise InvalidPosition(f"the server's log begins after {gtid}")


def _with_port(host: str) -> str:
    return host if ":" in host.rpartition("]")[2] else f"{host}:{_PORT}"


def _server_id() -> int:
    """Return an id of our own: a server disconnects an older replica with the same id, such as the reader."""
    return 2**31 + secrets.randbelow(2**31)

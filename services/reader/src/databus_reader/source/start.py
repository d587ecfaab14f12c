"""Where a pipeline without progress begins: `reader.start`, resolved once."""

import asyncio
import time

from databus.dump_client import DumpApi
from databus.errors import DumpUnusable, InvalidSettings, SourceUnavailable
from databus.progress import Progress
from databus.settings import Settings
from databus.source_connection import connect_source
from databus_binlog import GtidSet, InvalidPosition, Position
from databus_binlog.locate import locate
from databus_binlog.session import Session

#: longer than the 10 s that servers wait for semi-sync replicas by default
_COMMIT_SECONDS = 15.0
_PAUSE_SECONDS = 0.2


async def resolve(settings: Settings, host: str, session: Session) -> Progress:
    """Turn the setting into a first progress; `latest` and `earliest` are those of the host.

    Raises InvalidSettings, DumpUnusable or DumpApiUnavailable, and BinlogError.
    """
    start, server = settings.reader.start, session.server
    try:
        if start == "latest":
            end = await session.current_position()
            if server.flavor == "mysql" and server.gtid:
                located = await _located(settings, host, end.file, end.offset)
                await _until_executed(session, located)
                return located
            return Progress(end, server=server.identity, in_order=True)
        if start == "earliest":
            oldest = (await session.earliest_position()).file
            return await _located(settings, host, oldest, 4)
        kind, _, rest = start.partition(":")
        if kind == "gtid":
            return Progress(Position(str(GtidSet.parse(server.flavor, rest))))
        if kind == "dump":
            return await _of_dump(settings.dumps.url, rest)
        # Files are named differently on each host: this one is of the first.
        file, _, offset = start.rpartition(":")
        return await _located(settings, settings.source.hosts[0], file, int(offset))
    except InvalidPosition as error:
        raise InvalidSettings(f"reader.start: {start}: {error}") from error


async def _located(settings: Settings, host: str, file: str, offset: int) -> Progress:
    async with connect_source(settings.source, host) as session:
        identity = session.server.identity
    position = await locate(settings.source.login(host), file, offset, server_id=settings.server_id)
    return Progress(position, server=identity, in_order=True)


async def _until_executed(session: Session, located: Progress) -> None:
    """Wait for what is in MySQL's log, but not committed yet: semi-sync replicas may be waited for in between."""
    wanted = GtidSet.parse("mysql", located.position.gtid_set if located.position else "")
    deadline = time.monotonic() + _COMMIT_SECONDS
    while time.monotonic() < deadline:
        [(executed,)] = await session.query("SELECT @@GLOBAL.gtid_executed")
        if GtidSet.parse("mysql", str(executed).replace("\n", "")).covers(wanted):
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise SourceUnavailable("a transaction stands in the log and is not committed: do its semi-sync replicas answer?")


async def _of_dump(url: str, dump: str) -> Progress:
    """Ask dump-api for the position that a dump holds everything up to."""
    async with DumpApi(url) as api:
        manifest = await api.dump(dump)
    if manifest.position is None:
        raise DumpUnusable(f"reader.start: dump {dump} is {manifest.state} and has no position")
    return Progress(manifest.position, server=manifest.server)

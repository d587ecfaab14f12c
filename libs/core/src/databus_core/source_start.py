"""Turn a start, such as `latest` or a time, into a position of a host.

The reader does so with `reader.start`, at each login to a host until the pipeline's first position is committed, and
`databus pipeline reset --to` does it once.
"""

import asyncio
import time

from msgspec.structs import replace

from databus_binlog import GtidSet, InvalidPosition, Position
from databus_binlog.locate import locate
from databus_binlog.locate_time import locate_time
from databus_binlog.session import Session
from databus_core.errors import DumpUnusable, InvalidSettings, SourceUnavailable
from databus_core.manifest import Mode
from databus_core.progress import Progress
from databus_core.settings import (
    AnyStart,
    Dumps,
    Settings,
    StartAfterDump,
    StartAfterGtids,
    StartAt,
    StartAtTime,
    StartEarliest,
    StartLatest,
    StartSnapshot,
)
from databus_core.source_connection import connect_source

#: longer than the 10 s that servers wait for semi-sync replicas by default
_COMMIT_SECONDS = 15.0
_PAUSE_SECONDS = 0.2
#: offset of the first event in a binlog file
_FIRST_OFFSET = 4


async def first_progress(settings: Settings, progress: Progress, host: str, session: Session) -> Progress:
    """Return where a pipeline without a position begins.

    Where a reset has put it; at the log's end if all tables are loaded again; else at `reader.start`.

    Raises the errors of `resolve`.
    """
    if progress.start is not None:
        return Progress(progress.start, server=progress.server, in_order=progress.in_order)
    if progress.snapshot:
        return await resolve(settings, StartSnapshot(), host, session, option="doubt.all")
    return await resolve(settings, settings.reader.start, host, session, option="reader.start")


async def resolve(settings: Settings, start: AnyStart, host: str, session: Session, *, option: str) -> Progress:
    """Resolve a start to the first progress; `latest`, `earliest` and a time refer to this host.

    `option` names what set the start, for messages. Raises SourceUnavailable, DumpApiUnavailable, a FatalError with the
    reason, and BinlogError.
    """
    try:
        match start:
            case StartLatest() | StartSnapshot():
                end = await _progress_at_end(settings, host, session)
                return replace(end, snapshot=start == StartSnapshot())
            case StartEarliest():
                oldest = await session.earliest_position()
                return await _progress_at(settings, host, oldest.file, _FIRST_OFFSET)
            case StartAt(file, offset):
                # Each host has its own files. The setting refers to those of the first host.
                return await _progress_at(settings, settings.source.hosts[0], file, offset)
            case StartAtTime():
                found = await locate_time(settings.source.login(host), start.time_us, server_id=settings.server_id)
                return await _progress_at(settings, host, found.file, found.offset)
            case StartAfterGtids(gtid_set):
                return Progress(Position(str(GtidSet.parse(session.server.flavor, gtid_set))))
            case StartAfterDump(dump):
                return await _progress_of_dump(settings.dumps, dump, option)
    except InvalidPosition as error:
        raise InvalidSettings(f"{option}: {start}: {error}") from error


async def _progress_at_end(settings: Settings, host: str, session: Session) -> Progress:
    """Determine the progress at the end of the host's log."""
    end, server = await session.current_position(), session.server
    if server.flavor == "mysql" and server.gtid:
        located = await _progress_at(settings, host, end.file, end.offset)
        await _wait_until_executed(session, located)
        return located
    return Progress(end, server=server.identity, in_order=True)


async def _progress_at(settings: Settings, host: str, file: str, offset: int) -> Progress:
    async with connect_source(settings.source, host) as session:
        identity = session.server.identity
    position = await locate(settings.source.login(host), file, offset, server_id=settings.server_id)
    return Progress(position, server=identity, in_order=True)


async def _wait_until_executed(session: Session, located: Progress) -> None:
    """Wait until MySQL has committed what is in its log; semi-sync replicas may have to acknowledge it first."""
    wanted = GtidSet.parse("mysql", located.position.gtid_set if located.position else "")
    deadline = time.monotonic() + _COMMIT_SECONDS
    while time.monotonic() < deadline:
        [(executed,)] = await session.query("SELECT @@GLOBAL.gtid_executed")
        if GtidSet.parse("mysql", str(executed).replace("\n", "")).covers(wanted):
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise SourceUnavailable(
        f"transactions in the binlog were not committed within {_COMMIT_SECONDS:g} s: check that the semi-synchronous "
        "replicas acknowledge them"
    )


async def _progress_of_dump(section: Dumps, dump: str, option: str) -> Progress:
    """Ask dump-api for a dump's position; the dump contains every change before that position."""
    # The client imports httpx, which takes a sixth of the time in which the reader starts.
    from databus_core.dump_client import DumpApi  # noqa: PLC0415

    async with DumpApi.of(section) as api:
        manifest = await api.dump(dump)
    if manifest.mode is Mode.CHUNKED:
        raise DumpUnusable(f"{option}: dump {dump} is chunked and has no single position: name another one")
    if manifest.position is None:
        raise DumpUnusable(f"{option}: dump {dump} is {manifest.state} and has no position: name a complete dump")
    return Progress(manifest.position, server=manifest.server)

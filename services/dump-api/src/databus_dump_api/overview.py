"""What the operations page shows: the state of the pipeline, and its dumps."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime

import msgspec

from databus_core.errors import DatabusError
from databus_core.manifest import DumpProgress, Manifest, Mode, State
from databus_core.pipeline_status import PipelineStatus, read_status
from databus_core.settings import Settings
from databus_dump_api.dumps import DumpManager
from databus_dump_api.server_sent import encode
from databus_dump_api.shared_read import SharedRead

#: how many dumps are shown at most
_DUMPS = 20
#: how long a section of the state, or the list of dumps, may take
_SECONDS = 5.0


class DumpSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A dump, without its tables and files."""

    id: str
    state: State
    mode: Mode
    #: name of the schedule that requested it; empty: a client did
    schedule: str
    #: when it was requested
    created: datetime
    #: when it ended
    completed: datetime | None
    #: number of its tables
    tables: int
    #: rows in its files
    rows: int
    #: size of its files, in all formats
    bytes: int
    #: how many clients read it; null: not known
    leases: int | None
    #: null unless it is running
    progress: DumpProgress | None
    #: why it has no result
    error: str | None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the pipeline, and its dumps."""

    status: PipelineStatus
    #: the newest 20, the newest first; null if they cannot be read
    dumps: list[DumpSummary] | None
    #: why they cannot be read
    dumps_error: str | None


async def read_overview(settings: Settings, dumps: DumpManager) -> Overview:
    """Read the state and the dumps at the same time."""
    status, (found, error) = await asyncio.gather(read_status(settings, _SECONDS), _read_dumps(dumps))
    return Overview(status=status, dumps=found, dumps_error=error)


async def follow(overview: SharedRead[Overview]) -> AsyncIterator[bytes]:
    """Yield an event for each read, forever."""
    while True:
        yield encode("overview", await overview.next())


async def _read_dumps(dumps: DumpManager) -> tuple[list[DumpSummary] | None, str | None]:
    """Return the dumps, or why they cannot be read."""
    try:
        async with asyncio.timeout(_SECONDS):
            newest = (await dumps.newest_first())[:_DUMPS]
            leases = await _leases(dumps)
            return [_summary(await dumps.with_progress(each), leases) for each in newest], None
    except TimeoutError:
        return None, f"no answer within {_SECONDS:g} s"
    except DatabusError as error:
        return None, str(error)


async def _leases(dumps: DumpManager) -> Counter[str] | None:
    try:
        return await dumps.lease_counts()
    except DatabusError:  # the state of the pipeline reports that Redis is away
        return None


def _summary(manifest: Manifest, leases: Counter[str] | None) -> DumpSummary:
    return DumpSummary(
        id=manifest.id,
        state=manifest.state,
        mode=manifest.mode,
        schedule=manifest.schedule,
        created=manifest.created,
        completed=manifest.completed,
        tables=len(manifest.tables),
        rows=sum(file.rows for file in manifest.files if file.format is manifest.formats[0]),
        bytes=sum(file.bytes for file in manifest.files),
        leases=None if leases is None else leases[manifest.id],
        progress=manifest.progress,
        error=manifest.error,
    )

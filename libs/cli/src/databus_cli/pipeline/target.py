"""Where a reset makes a pipeline continue: a position that a host of the source has, and its distance from another."""

from collections.abc import Mapping
from typing import NamedTuple

from redis.asyncio import Redis

from databus_core.errors import SourceUnavailable
from databus_core.progress import Progress
from databus_core.readiness import require_ready
from databus_core.settings import AnyStart, Settings
from databus_core.source_connection import connect_source
from databus_core.source_log import log_offset
from databus_core.source_start import resolve
from databus_core.source_verify import verify
from databus_core.switch import stored_host


class Target(NamedTuple):
    """A resolved start of a pipeline."""

    progress: Progress
    #: the host that resolved it
    host: str
    #: identity of this host
    server: str
    #: size of each file of this host's binlog, the oldest first
    logs: Mapping[str, int]


async def resolve_target(settings: Settings, redis: Redis, start: AnyStart) -> Target:
    """Resolve a start at the host that the reader reads, or at the first other host that can be reached.

    Raises SourceUnavailable, DumpApiUnavailable, and a FatalError if the reader could not start there.
    """
    current = await stored_host(redis, settings.name)
    failures = []
    for host in sorted(settings.source.hosts, key=lambda each: each != current):
        try:
            return await _resolve_at(settings, host, start)
        except SourceUnavailable as error:
            failures.append(str(error))
    raise SourceUnavailable("; ".join(failures))


async def _resolve_at(settings: Settings, host: str, start: AnyStart) -> Target:
    async with connect_source(settings.source, host) as session:
        require_ready(session.server, host, partial=settings.publisher.publish_partial)
        progress = await resolve(settings, start, host, session, option="--to")
        await verify(settings, host, session, progress)
        return Target(progress, host, session.server.identity, await session.logs())


def distance(target: Target, published: Progress) -> str:
    """Describe what of the binlog lies between the published position and the target, and what happens to it."""
    begin, end = published.position, target.progress.position
    known = (
        log_offset(target.logs, position)
        for position, server in ((begin, published.server), (end, target.progress.server))
        if position and server == target.server
    )
    match [offset for offset in known if offset is not None]:
        case [start, stop] if start < stop:
            return f"it skips {_size(stop - start)} of the binlog: the changes in it are never published"
        case [start, stop] if start > stop:
            return f"it goes back by {_size(start - stop)} of the binlog: the changes in it are published again"
        case [_, _]:
            return "it neither skips nor repeats changes"
    return "how much of the binlog it skips or repeats is not known: that host does not have both positions as files"


def _size(size: int) -> str:
    """Return a number of bytes in the largest unit in which it is at least 1."""
    unit, name = next(
        (unit, name) for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes")) if size >= unit
    )
    return f"{size / unit:.1f} {name}" if unit > 1 else f"{size} {name}"

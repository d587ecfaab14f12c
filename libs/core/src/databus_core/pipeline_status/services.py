"""Sections of the state of a pipeline: its processes, and the stream between them."""

import msgspec

from databus_core.leases import ROLES, election_of, open_lease
from databus_core.pipe import read_backlog
from databus_core.pipeline_status.reads import Reads
from databus_core.redis_connection import connect_redis
from databus_core.switch import stored_host


class SourceHost(msgspec.Struct, frozen=True, kw_only=True):
    """The host of the database."""

    #: that the reader reads, or read last
    host: str | None


class StreamBacklog(msgspec.Struct, frozen=True, kw_only=True):
    """What waits in Redis to be published."""

    #: null if reader and publisher have not met yet
    backlog_bytes: int | None
    #: above this, the reader waits (`reader.backlog_limit`)
    limit_bytes: int


async def read_host(reads: Reads) -> SourceHost:
    """Return the host that the reader reads, or read last."""
    async with connect_redis(reads.settings.redis) as redis:
        return SourceHost(host=await stored_host(redis, reads.settings.name))


async def read_leaders(reads: Reads) -> dict[str, str | None]:
    """Return the process that holds the lease of each role. A lease in Kubernetes may have expired."""
    settings, found = reads.settings, {}
    async with connect_redis(settings.redis) as redis:
        for role in ROLES:
            async with open_lease(election_of(settings, role), settings.name, role, redis) as lease:
                found[str(role)] = await lease.holder()
    return found


async def read_stream(reads: Reads) -> StreamBacklog:
    """Return the bytes in the Redis stream that are not published yet."""
    async with connect_redis(reads.settings.redis) as redis:
        backlog = await read_backlog(redis, reads.settings.name)
    return StreamBacklog(backlog_bytes=backlog, limit_bytes=reads.settings.reader.backlog_limit)

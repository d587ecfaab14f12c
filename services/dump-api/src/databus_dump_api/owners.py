"""Which replica takes or deletes a dump, and how far it has come: expiring keys in Redis that all replicas read.

Redis may lose them. Then two replicas may work on one dump until its claim (`folder_claim`, `bucket_store`) stops one
of them.
"""

import os
import secrets
import socket

import msgspec
from redis.asyncio import Redis

from databus_core import names
from databus_core.leases.redis import RedisLease
from databus_core.manifest import DumpProgress
from databus_core.redis_connection import redis_errors

#: how long an owner that does not renew its lease remains the owner
LEASE_SECONDS = 10.0
#: longer than a request that deletes a dump, or that requests one, takes
DELETION_SECONDS = SCHEDULE_SECONDS = 60.0


class Owners:
    """The owners of one pipeline's dumps and schedules. Every method raises the errors of `redis_errors`."""

    def __init__(self, redis: Redis, pipeline: str) -> None:
        self._redis = redis
        self._pipeline = pipeline

    def lease(self, dump: str) -> RedisLease:
        """Return a new candidate for taking a dump, also against others of this process."""
        return self._candidate(names.dump_owner_key(self._pipeline, dump), LEASE_SECONDS)

    def deletion(self, dump: str) -> RedisLease:
        """Return a new candidate for deleting a dump."""
        return self._candidate(names.dump_deletion_key(self._pipeline, dump), DELETION_SECONDS)

    def schedule(self, schedule: str) -> RedisLease:
        """Return a new candidate for requesting the next dump of a schedule."""
        return self._candidate(names.schedule_key(self._pipeline, schedule), SCHEDULE_SECONDS)

    async def is_owned(self, dump: str) -> bool:
        """Return whether a replica takes the dump."""
        return await self._exists(names.dump_owner_key(self._pipeline, dump))

    async def is_deleted(self, dump: str) -> bool:
        """Return whether a replica deletes the dump."""
        return await self._exists(names.dump_deletion_key(self._pipeline, dump))

    async def show(self, dump: str, progress: DumpProgress) -> None:
        """Publish how far a running dump has come."""
        with redis_errors():
            key = names.dump_progress_key(self._pipeline, dump)
            await self._redis.set(key, msgspec.json.encode(progress), px=round(LEASE_SECONDS * 1000))

    async def progress(self, dump: str) -> DumpProgress | None:
        """Return how far a running dump has come; None if its owner has not published it."""
        with redis_errors():
            shown = await self._redis.get(names.dump_progress_key(self._pipeline, dump))
        return None if shown is None else msgspec.json.decode(shown, type=DumpProgress)

    def _candidate(self, key: str, seconds: float) -> RedisLease:
        me = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"
        return RedisLease(self._redis, key, me, seconds)

    async def _exists(self, key: str) -> bool:
        with redis_errors():
            return bool(await self._redis.exists(key))

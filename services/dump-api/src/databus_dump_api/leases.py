"""Leases: each client that reads a dump has a key in Redis that expires unless it is renewed."""

import secrets
from collections import Counter

from redis.asyncio import Redis

from databus_core import names
from databus_core.redis_connection import redis_errors


class Leases:
    """The leases of one pipeline's dumps; `ttl` is in seconds. Every method raises the errors of `redis_errors`."""

    def __init__(self, redis: Redis, pipeline: str, ttl: float) -> None:
        self._redis = redis
        self._pipeline = pipeline
        self.ttl = ttl

    async def take(self, dump: str) -> str:
        """Take a lease and return its id. The caller must check afterwards that the dump can still be read."""
        lease = secrets.token_hex(8)
        with redis_errors():
            await self._redis.set(self._key(dump, lease), b"", px=self._milliseconds)
        return lease

    async def renew(self, dump: str, lease: str) -> bool:
        """Reset a lease's expiry. False if the lease does not exist or has expired."""
        with redis_errors():
            return bool(await self._redis.pexpire(self._key(dump, lease), self._milliseconds))

    async def release(self, dump: str, lease: str) -> bool:
        """End a lease. False if it did not exist."""
        with redis_errors():
            return bool(await self._redis.delete(self._key(dump, lease)))

    async def is_leased(self, dump: str) -> bool:
        """Return whether the dump has a lease."""
        with redis_errors():
            async for _ in self._redis.scan_iter(match=self._key(dump, "*"), count=1000):
                return True
        return False

    async def counts(self) -> Counter[str]:
        """Count the leases of each dump."""
        with redis_errors():
            found = [key async for key in self._redis.scan_iter(match=self._key("*", "*"), count=1000)]
        return Counter(key.decode().split(":")[-2] for key in found)

    @property
    def _milliseconds(self) -> int:
        return max(1, round(self.ttl * 1000))

    def _key(self, dump: str, lease: str) -> str:
        return names.lease_key(self._pipeline, dump, lease)

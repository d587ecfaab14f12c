"""A leader lease stored as an expiring key in Redis.

Redis may lose the key, when its data is flushed or when a replica without the key is promoted. Then the holder's next
renewal sets the key again. If a standby sets it first, both replicas are active until that renewal is refused.
"""

from typing import cast

from redis.asyncio import Redis

from databus_core.redis_connection import delete_if_equal, redis_errors

# Redis runs the script even when it is out of memory: without active replicas the stream would never be trimmed.
_TAKE = """#!lua flags=allow-oom
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
"""


class RedisLease:
    """A lease whose key has the holder's name as its value. Raises the errors of `redis_errors`."""

    def __init__(self, redis: Redis, key: str, me: str, duration: float) -> None:
        self.me = me
        self._redis = redis
        self._key = key
        self._milliseconds = round(duration * 1000)
        self._take = redis.register_script(_TAKE)

    async def take(self) -> str:
        """Set the key and its expiry, unless another candidate holds it. Returns the holder."""
        with redis_errors():
            return _text(await self._take(keys=[self._key], args=[self.me, self._milliseconds]))

    async def holder(self) -> str | None:
        """Return the key's value."""
        with redis_errors():
            value = await self._redis.get(self._key)
        return None if value is None else _text(value)

    async def release(self) -> None:
        """Delete the key if it is ours."""
        with redis_errors():
            await delete_if_equal(self._redis, self._key, self.me)


def _text(value: object) -> str:
    return cast(bytes, value).decode(errors="replace")

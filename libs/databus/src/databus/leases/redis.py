"""A lease as an expiring key in Redis.

Redis may forget the key (flushed, failed over): then the holder's next renewal sets it again, unless a standby was
quicker. So there can be two leaders until that renewal, and after it there is one.
"""

from typing import cast

from redis.asyncio import Redis

from databus.redis_connection import redis_errors

# Both must work when memory is short: it is the holder who makes room.
_TAKE = """#!lua flags=allow-oom
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
"""
_RELEASE = """#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return redis.status_reply('OK')
"""


class RedisLease:
    """The key's value names the holder. Raises what `redis_errors` gives."""

    def __init__(self, redis: Redis, key: str, me: str, duration: float) -> None:
        self.me = me
        self._redis = redis
        self._key = key
        self._milliseconds = round(duration * 1000)
        self._take = redis.register_script(_TAKE)
        self._release = redis.register_script(_RELEASE)

    async def take(self) -> str:
        """Set the key, or its time anew, unless it is another's; give the holder."""
        with redis_errors():
            return _text(await self._take(keys=[self._key], args=[self.me, self._milliseconds]))

    async def holder(self) -> str | None:
        """Give the key's value."""
        with redis_errors():
            value = await self._redis.get(self._key)
        return None if value is None else _text(value)

    async def release(self) -> None:
        """Delete the key if it is ours."""
        with redis_errors():
            await self._release(keys=[self._key], args=[self.me])


def _text(value: object) -> str:
    return cast(bytes, value).decode(errors="replace")

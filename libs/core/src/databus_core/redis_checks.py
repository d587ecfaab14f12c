"""Checks of Redis: whether the hand-over works there, who holds the leases, and whether Redis may run out of memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from databus_core.checks import Check, Result, Warned, results
from databus_core.leases import Role, election_of, open_lease
from databus_core.pipe import ReaderEnd
from databus_core.redis_connection import connect_redis, redis_errors
from databus_core.settings import Settings

#: what is found if the account may not run INFO
_UNKNOWN = "not known: the account may not run INFO"


class _Context(NamedTuple):
    settings: Settings
    redis: Redis


async def redis_results(settings: Settings, *roles: Role) -> list[Result]:
    """Check Redis for services with these roles; without any, only the connection."""
    checks = [*(_PIPE_CHECKS if roles else ()), *(_lease_check(role) for role in roles)]
    return await results("Redis", _connect(settings), [_VERSION, *checks], redis_errors)


async def _version(context: _Context) -> str:
    return str((await _info(context, "server")).get("redis_version", _UNKNOWN))


async def _functions(context: _Context) -> str:
    await ReaderEnd(context.redis, context.settings.name).probe()
    return "may be loaded and called"


async def _eviction(context: _Context) -> str:
    memory = await _info(context, "memory")
    policy = str(memory.get("maxmemory_policy", _UNKNOWN))
    if memory.get("maxmemory") and policy != "noeviction":
        raise Warned(
            f"Redis: maxmemory-policy is {policy}: a full Redis may drop the stream, and the reader starts again from "
            "Kafka's progress each time: set maxmemory-policy noeviction"
        )
    return policy


async def _memory(context: _Context) -> str:
    memory, limit = await _info(context, "memory"), context.settings.reader.backlog_limit
    if "used_memory" not in memory:
        return _UNKNOWN
    largest, used = int(memory.get("maxmemory", 0)), int(memory["used_memory"])
    if largest and largest - used < limit:
        raise Warned(
            f"Redis: {largest - used:,} bytes are left of maxmemory {largest:,}, fewer than reader.backlog_limit "
            f"({limit:,}): the reader waits while Redis is full: raise maxmemory, or lower reader.backlog_limit"
        )
    return f"{used / 2**20:,.0f} MiB used, " + (f"maxmemory {largest / 2**20:,.0f} MiB" if largest else "no maxmemory")


def _lease_check(role: Role) -> Check[_Context]:
    async def holder(context: _Context) -> str:
        election = election_of(context.settings, role)
        async with open_lease(election, context.settings.name, role, context.redis) as lease:
            return f"held by {held}" if (held := await lease.holder()) else "nobody holds it"

    return Check(f"lease of the {role}", holder)


async def _info(context: _Context, section: str) -> dict[str, Any]:
    """Return a section of INFO; empty for an account without the right to read it, which no service needs."""
    try:
        return await context.redis.info(section)
    except NoPermissionError:
        return {}


@asynccontextmanager
async def _connect(settings: Settings) -> AsyncIterator[_Context]:
    async with connect_redis(settings.redis) as redis:
        yield _Context(settings, redis)


_VERSION = Check("version", _version)
_PIPE_CHECKS = (Check("functions", _functions), Check("maxmemory-policy", _eviction), Check("memory", _memory))

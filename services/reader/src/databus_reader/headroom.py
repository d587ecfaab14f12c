"""How long and how far the reader could fall behind, as metrics: the binlog's retention and the memory of Redis."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from databus_binlog import Position
from databus_changes.translate import Translator
from databus_core.errors import DatabusError
from databus_core.metrics import reader as metrics
from databus_core.redis_connection import connect_redis
from databus_core.settings import Settings
from databus_core.source_connection import connect_source
from databus_core.source_log import log_offset, read_retention

_PAUSE_SECONDS = 60.0


@asynccontextmanager
async def watching_headroom(settings: Settings, host: str, translator: Translator) -> AsyncIterator[None]:
    """During the block, look at the server and Redis every minute. What cannot be looked up now is not a number.

    The retention is the last one that was seen: it matters most while the server is away.
    """

    async def watch() -> None:
        while True:
            await _look_at_binlog(settings, host, translator)
            await _look_at_redis(settings)
            await asyncio.sleep(_PAUSE_SECONDS)

    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        while not task.done():  # a client that is connecting may swallow a cancellation
            task.cancel()
            await asyncio.wait({task}, timeout=1)


async def _look_at_binlog(settings: Settings, host: str, translator: Translator) -> None:
    """Needs REPLICATION CLIENT, which a reader has for other reasons."""
    read = None
    try:
        async with connect_source(settings.source, host) as session:
            retention = await read_retention(session) or math.inf
            metrics.RETENTION_HEADROOM_SECONDS.set_function(lambda: retention - metrics.FRESHNESS.seconds)
            if place := translator.reached.place:
                read = log_offset(await session.logs(), Position("", *place))
    except DatabusError:  # the reader's own connection shows whether the server is away
        pass
    metrics.RETENTION_HEADROOM_BYTES.set(math.nan if read is None else read)


async def _look_at_redis(settings: Settings) -> None:
    used = limit = math.nan
    try:
        async with connect_redis(settings.redis) as redis:
            memory = await redis.info("memory")
            used, limit = memory.get("used_memory", math.nan), memory.get("maxmemory", math.nan)
    except DatabusError:  # also: the account may lack the right to INFO, which no service needs
        pass
    metrics.REDIS_MEMORY_BYTES.set(used)
    metrics.REDIS_MEMORY_LIMIT_BYTES.set(limit)

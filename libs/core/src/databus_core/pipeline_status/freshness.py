"""A section of the state of a pipeline: how fresh the data is at each stage between the database and Kafka."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from databus_core.errors import DatabusError
from databus_core.pipe import read_until
from databus_core.pipeline_status.reads import Reads
from databus_core.redis_connection import connect_redis

Freshness: TypeAlias = dict[str, float | None]


async def read_freshness(reads: Reads) -> Freshness:
    """Return the seconds of each stage; a stage that cannot be read is not known."""
    found = await asyncio.gather(*(_known(read(reads)) for read in _STAGES.values()))
    return dict(zip(_STAGES, found, strict=True))


async def _known(read: Awaitable[float | None]) -> float | None:
    try:
        seconds = await read
    except DatabusError:  # the section of the dependency reports it
        return None
    return None if seconds is None else round(max(seconds, 0.0), 3)


async def _reader(reads: Reads) -> float | None:
    async with connect_redis(reads.settings.redis) as redis:
        read_to_us = await read_until(redis, reads.settings.name)
    return None if read_to_us is None else time.time() - read_to_us / 1e6


async def _publisher(reads: Reads) -> float | None:
    return (await reads.lag()).seconds


#: the stages, in the order in which a change passes them
_STAGES: dict[str, Callable[[Reads], Awaitable[float | None]]] = {
    "reader": _reader,
    "publisher": _publisher,
}

"""A section of the state of a pipeline: how fresh the data is at each stage between the database and Kafka."""

import time
from typing import TypeAlias

from databus_core.pipe import read_moments
from databus_core.pipeline_status.reads import Reads
from databus_core.redis_connection import connect_redis

#: stage → the time since the moment up to which it has everything, in seconds; None: not known
Freshness: TypeAlias = dict[str, float | None]


async def read_freshness(reads: Reads) -> Freshness:
    """Read how far reader and publisher are, as they note it in Redis. Raises the errors of `redis_errors`."""
    async with connect_redis(reads.settings.redis) as redis:
        moments = await read_moments(redis, reads.settings.name)
    now = time.time()
    seconds = [round(max(now - moment / 1e6, 0.0), 3) if moment else None for moment in moments]
    return dict(zip(("reader", "publisher"), seconds, strict=True))

"""Freshness goes on where the replica that was active before has come."""

import secrets
import time
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from databus_core import names
from databus_core.election import leading
from databus_core.leases import Role
from databus_core.metrics import publisher, reader
from databus_core.metrics.freshness import Freshness
from databus_core.pipe import PublisherEnd, ReaderEnd
from databus_core.progress import Progress
from databus_core.runtime import Health
from databus_core.settings import Election
from devstack import Server


@pytest.fixture
async def redis(redis_server: Server) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_server.url) as client:
        yield client


async def reach() -> None:
    """Reach what the work depends on: nothing."""


@pytest.mark.parametrize(
    ("role", "freshness", "seconds"), [("publisher", publisher.FRESHNESS, 100), ("reader", reader.FRESHNESS, 50)]
)
async def test_a_replica_that_takes_over_knows_how_old_the_data_is(
    redis: Redis, role: Role, freshness: Freshness, seconds: int
) -> None:
    pipeline, now = f"p{secrets.token_hex(4)}", time.time()
    moments = {"published_to": now - 100, "read_to": now - 50}
    key = names.generation_key(pipeline)
    await redis.hset(key, mapping={name: int(moment * 1e6) for name, moment in moments.items()})
    async with leading(Election(), pipeline, role, redis, Health(), reach):
        assert seconds <= freshness.seconds < seconds + 20


async def test_the_publisher_knows_it_although_a_reader_has_ended_the_generation(redis: Redis) -> None:
    pipeline = f"p{secrets.token_hex(4)}"
    first = PublisherEnd(redis, pipeline)
    first.published_to_us = int((time.time() - 1000) * 1e6)
    await first.open(Progress(None))
    await ReaderEnd(redis, pipeline).end_any_generation()
    async with leading(Election(), pipeline, "publisher", redis, Health(), reach):
        assert 1000 <= publisher.FRESHNESS.seconds < 1020


async def test_a_reader_ends_the_generation_of_a_publisher_that_noted_no_moment(redis: Redis) -> None:
    pipeline = f"p{secrets.token_hex(4)}"
    await PublisherEnd(redis, pipeline).open(Progress(None))
    await redis.hdel(names.generation_key(pipeline), "published_to")
    await ReaderEnd(redis, pipeline).end_any_generation()
    assert await redis.xlen(names.stream_key(pipeline)) == 1  # the publisher is woken

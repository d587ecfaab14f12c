"""Work ends when it is cancelled, even if a client swallows the cancellation, as redis-py and asyncmy may do."""

import asyncio
import random
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from redis.asyncio import Redis

from databus_core import names
from databus_core.election import holding
from databus_core.events import Heartbeat
from databus_core.leases.redis import RedisLease
from databus_core.pipe import PublisherEnd, ReaderEnd
from databus_core.progress import Progress
from databus_core.runtime import Health
from databus_core.settings import Source
from databus_core.source_connection import connect_source
from databus_reader.entries import EntryWriter
from devstack import Server

RENEW = 0.8


class Swallowing:
    """Waits until its task is cancelled, and swallows the cancellation."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def wait(self) -> None:
        self.begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


class SwallowingLease(RedisLease):
    """The next renewal swallows a cancellation."""

    swallowing: Swallowing | None = None

    async def take(self) -> str:
        swallowing, self.swallowing = self.swallowing, None
        if swallowing:
            await swallowing.wait()
        return await super().take()


class SwallowingEnd(ReaderEnd):
    """Every append swallows a cancellation."""

    swallowing: Swallowing

    async def append(self, payload: bytes, read_to_us: int = 0) -> int:
        await self.swallowing.wait()
        return await super().append(payload, read_to_us)


@pytest.fixture
async def redis(redis_server: Server) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_server.url) as client:
        yield client


async def test_the_lease_is_released_although_its_renewal_swallows_a_cancellation(redis: Redis) -> None:
    lease = SwallowingLease(redis, names.leader_key(secrets.token_hex(4), "reader"), "first", 2.5 * RENEW)
    async with asyncio.timeout(10), holding(lease, "reader", RENEW, Health(), asyncio.Event().wait):
        swallowing = lease.swallowing = Swallowing()
        await swallowing.begun.wait()
    assert await lease.holder() is None


async def test_an_append_that_swallows_a_cancellation_does_not_wait_for_the_publisher(redis: Redis) -> None:
    pipeline = secrets.token_hex(4)
    await PublisherEnd(redis, pipeline).open(Progress())
    reader = SwallowingEnd(redis, pipeline)
    reader.swallowing = Swallowing()
    await reader.claim()
    async with asyncio.timeout(10), EntryWriter(reader, 0, Health()) as entries:
        await entries.write([Heartbeat("", "binlog.000002", 4711, 0)])
        await entries.flush()
        await reader.swallowing.begun.wait()
    assert await reader.backlog() > 0


async def test_a_session_that_is_cancelled_while_it_connects_ends(source: Server) -> None:
    settings = Source(hosts=[f"{source.host}:{source.port}"], user=source.user, password=source.password)
    moments = random.Random(1)

    async def hold() -> None:
        async with connect_source(settings):
            await asyncio.Event().wait()

    for _ in range(200):
        holding_it = asyncio.create_task(hold())
        for _ in range(moments.randrange(20)):  # turns of the event loop; a login takes more
            await asyncio.sleep(0)
        holding_it.cancel()
        _, running = await asyncio.wait([holding_it], timeout=5)
        assert not running

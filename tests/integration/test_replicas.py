"""Two readers and two publishers of a pipeline, one of each active: every row arrives once whatever happens to them."""

import asyncio
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from redis.asyncio import Redis

from common.connections import Execute, connected
from common.pipelines import Changes, Consume, MakePipeline
from common.waiting import eventually
from databus_core import names
from databus_core.pipe import ReaderEnd
from devstack import Server, Stack
from devstack.pipeline import Pipeline, Service

pytestmark = pytest.mark.mysql_in_slow

RENEW = 1.0
SERVICES: tuple[Service, ...] = ("reader", "publisher")


@pytest.fixture(scope="module")
def redis_server(own: Stack) -> Server:
    return own.start("redis")


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute) -> Pipeline:
    """The first replicas are active, the second ones stand by."""
    await execute("CREATE TABLE ledger (n INT PRIMARY KEY)")
    election = {"election": {"renew": RENEW}}
    pipeline = make_pipeline(
        source, schema, reader={"server_id": secrets.randbelow(2**31) + 1000} | election, publisher=election
    )
    for replica in (0, 1):
        for service in ("publisher", "reader"):
            await asyncio.to_thread(pipeline.spawn, service, replica=replica)
            await until(pipeline, service, replica, states={"standby" if replica else "active"})
    return pipeline


async def state(pipeline: Pipeline, service: Service, replica: int) -> str:
    """Return the state of a replica: `active`, `standby`, or "" if it is not ready."""
    try:
        answer = await asyncio.to_thread(pipeline.get, service, "/readyz", replica)
    except httpx.TransportError:
        assert pipeline.pid(service, replica), pipeline.log(service, replica).read_text()
        return ""
    if answer.status_code != httpx.codes.OK:
        return ""
    return "standby" if answer.text.startswith("standby") else "active"


async def until(pipeline: Pipeline, service: Service, *replicas: int, states: set[str]) -> None:
    """Wait until the replicas are in these states, in any order."""

    async def reached() -> bool:
        return {await state(pipeline, service, replica) for replica in replicas} == states

    await eventually(reached)


@asynccontextmanager
async def ledger(source: Server, schema: str) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """Write rows with growing numbers; yields a function that stops the writing and returns how many were written."""
    ended = asyncio.Event()

    async def write() -> int:
        n = 0
        async with connected(source) as run:
            while not ended.is_set():
                await run(f"INSERT INTO {schema}.ledger VALUES (%s)", n)
                n += 1
        return n

    async def end() -> int:
        ended.set()
        return await writing

    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(write())
        yield end
        ended.set()


async def arrived(consumer: Changes, count: int) -> list[int]:
    return [int(row[0]) for message in await consumer.until(count) for row in message["Rows"]]


@pytest.mark.parametrize("service", ["reader", "publisher"])
async def test_t22_a_suspended_replica_is_replaced_and_does_no_harm_when_it_resumes(
    pipeline: Pipeline, source: Server, schema: str, changes: Consume, service: Service
) -> None:
    consumer = await changes(f"{pipeline.name}.{schema}.ledger")
    sleeper = pipeline.pid(service)
    assert sleeper
    async with ledger(source, schema) as end:
        found = await arrived(consumer, 1)
        os.kill(sleeper, signal.SIGSTOP)
        try:
            asleep = time.monotonic()
            await until(pipeline, service, 1, states={"active"})
            assert time.monotonic() - asleep < 3 * RENEW + 3  # to connect and begin takes some time too
            found += await arrived(consumer, 10)
        finally:
            os.kill(sleeper, signal.SIGCONT)
        await until(pipeline, service, 0, states={"standby"})
        found += await arrived(consumer, 10)
        count = await end()
    found += await arrived(consumer, count - len(found))
    assert found == list(range(count))
    assert pipeline.pid(service) == sleeper


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize("service", ["reader", "publisher"])
async def test_t22_two_replicas_active_at_the_same_time_lose_and_repeat_nothing(
    pipeline: Pipeline, source: Server, schema: str, redis_server: Server, changes: Consume, service: Service
) -> None:
    """Delete the lease until the standby is faster than the holder's renewal."""
    consumer = await changes(f"{pipeline.name}.{schema}.ledger")
    key = names.leader_key(pipeline.name, service)
    async with ledger(source, schema) as end, Redis.from_url(redis_server.url) as redis:
        found = await arrived(consumer, 1)
        first = await redis.get(key)

        async def changed() -> bool:
            if (holder := await redis.get(key)) == first:
                await redis.delete(key)
            return holder not in (first, None)

        await eventually(changed)
        await until(pipeline, service, 1, states={"active"})
        await until(pipeline, service, 0, states={"standby"})
        found += await arrived(consumer, 10)
        count = await end()
    found += await arrived(consumer, count - len(found))
    assert found == list(range(count))


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_t22_the_active_reader_continues_after_a_deposed_reader_claimed_a_generation(
    pipeline: Pipeline, source: Server, schema: str, redis_server: Server, changes: Consume
) -> None:
    consumer = await changes(f"{pipeline.name}.{schema}.ledger")
    async with connected(source) as run, Redis.from_url(redis_server.url) as redis:
        deposed = ReaderEnd(redis, pipeline.name)
        await deposed.end_any_generation()
        async with asyncio.timeout(10):
            while await deposed.claim() is None:
                pass
        await run(f"INSERT INTO {schema}.ledger VALUES (0)")
        assert await arrived(consumer, 1) == [0]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize("service", ["reader", "publisher"])
async def test_a_replica_that_is_stopped_hands_over_at_once(
    pipeline: Pipeline, source: Server, schema: str, redis_server: Server, changes: Consume, service: Service
) -> None:
    consumer = await changes(f"{pipeline.name}.{schema}.ledger")
    key = names.leader_key(pipeline.name, service)
    async with ledger(source, schema) as end, Redis.from_url(redis_server.url) as redis:
        found = await arrived(consumer, 1)
        first = await redis.get(key)
        await asyncio.to_thread(pipeline.stop, service)
        ended = time.monotonic()
        async with asyncio.timeout(10):
            while await redis.get(key) in (first, None):
                pass
        assert time.monotonic() - ended < RENEW
        await until(pipeline, service, 1, states={"active"})
        count = await end()
    found += await arrived(consumer, count - len(found))
    assert found == list(range(count))


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_replicas_continue_after_an_outage_of_redis_that_lost_all_data(
    pipeline: Pipeline, source: Server, schema: str, own: Stack, redis_server: Server, changes: Consume
) -> None:
    consumer = await changes(f"{pipeline.name}.{schema}.ledger")
    async with ledger(source, schema) as end:
        found = await arrived(consumer, 1)
        await asyncio.to_thread(own.kill, "redis")
        for service in SERVICES:  # all replicas have noticed the outage
            await until(pipeline, service, 0, 1, states={""})
        await asyncio.to_thread(own.restart, "redis")
        async with Redis.from_url(redis_server.url) as redis:
            await redis.flushall()
        found += await arrived(consumer, 10)
        count = await end()
    found += await arrived(consumer, count - len(found))
    assert found == list(range(count))
    for service in SERVICES:
        await until(pipeline, service, 0, 1, states={"active", "standby"})

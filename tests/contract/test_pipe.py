"""`databus_core.pipe` on a real Redis: who may append, which losses each end notices, and Redis without memory."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis

from common.waiting import eventually
from databus_binlog import Position
from databus_core import names
from databus_core.errors import GenerationLost, RedisUnavailable
from databus_core.events import Heartbeat
from databus_core.pipe import PublisherEnd, ReaderEnd, ReadTo
from databus_core.progress import Progress
from databus_core.redis_connection import connect_redis
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_reader.entries import EntryWriter
from devstack import Server, Stack

START = Progress(Position("0-1-7", "binlog.000002", 4711), 12, 1_700_000_000_000_000)


@pytest.fixture
async def redis(redis_server: Server) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_server.url) as client:
        yield client


@pytest.fixture
def pipeline() -> str:
    return secrets.token_hex(4)


@pytest.fixture
def publisher(redis: Redis, pipeline: str) -> PublisherEnd:
    return PublisherEnd(redis, pipeline)


@pytest.fixture
def reader(redis: Redis, pipeline: str) -> ReaderEnd:
    return ReaderEnd(redis, pipeline)


async def test_entries_arrive_in_order_and_stay_in_redis_until_they_are_trimmed(
    publisher: PublisherEnd, reader: ReaderEnd
) -> None:
    assert await reader.claim() is None
    await publisher.open(START)
    assert await reader.claim() == START
    assert [await reader.append(payload) for payload in (b"one", b"two", b"three")] == [3, 6, 11]
    first = await publisher.take(count=2, block_ms=None)
    assert [entry.payload for entry in first] == [b"one", b"two"]
    await publisher.trim(first)
    assert await reader.backlog() == 5
    last = await publisher.take(count=9, block_ms=1000)
    assert [entry.payload for entry in last] == [b"three"]
    await publisher.trim(last)
    assert await reader.backlog() == 0
    assert await publisher.take(count=9, block_ms=1) == []


async def test_trimming_published_entries_keeps_those_that_were_taken_after_them(
    publisher: PublisherEnd, reader: ReaderEnd
) -> None:
    await publisher.open(START)
    await reader.claim()
    await reader.append(b"one")
    first = await publisher.take(count=9, block_ms=None)
    # This take finds no entries and calls trim, which must remove nothing: no entry is published yet.
    assert await publisher.take(count=9, block_ms=1) == []
    await reader.append(b"two")
    assert await reader.backlog() == 6
    ahead = await publisher.take(count=9, block_ms=None)
    await publisher.trim(first)
    assert await reader.backlog() == 3
    await publisher.trim(ahead)
    assert await reader.backlog() == 0


async def test_the_publisher_learns_up_to_when_the_database_is_in_the_stream_and_in_how_many_entries(
    publisher: PublisherEnd, reader: ReaderEnd
) -> None:
    await publisher.open(START)
    await reader.claim()
    async with EntryWriter(reader, 2**20, Health()) as entries:
        entries.has_read_to(1000)
        await entries.write([Heartbeat("", "binlog.000002", 4711, 0)])
        await entries.flush()
        await eventually(reader.backlog)
        await publisher.trim()
        assert publisher.read_to == ReadTo(entries=1, time_us=1000)
        entries.has_read_to(2000)  # the database has nothing else
        await entries.report()
        await publisher.trim()
        assert publisher.read_to == ReadTo(1, 2000)
        await entries.write([Heartbeat("", "binlog.000002", 4712, 0)])
        entries.has_read_to(3000)
        await entries.report()
        await publisher.trim()
        assert publisher.read_to == ReadTo(1, 2000), "what was read later is not in the stream yet"


async def test_the_refusal_of_the_last_entry_is_raised_by_a_flush(publisher: PublisherEnd, reader: ReaderEnd) -> None:
    await publisher.open(START)
    await reader.claim()
    async with asyncio.timeout(10), EntryWriter(reader, 2**20, Health()) as entries:
        await entries.write([Heartbeat("", "binlog.000002", 4711, 0)])
        await publisher.open(START)
        with pytest.raises(GenerationLost):
            while True:
                await entries.flush()
                await asyncio.sleep(0)


async def test_large_entries_are_taken_one_at_a_time(publisher: PublisherEnd, reader: ReaderEnd) -> None:
    await publisher.open(START)
    await reader.claim()
    for payload in (b"small", b"large" * 2**19, b"large" * 2**19, b"small"):
        await reader.append(payload)
    await publisher.trim(await publisher.take(count=1, block_ms=None))
    for payload in (b"large" * 2**19, b"large" * 2**19, b"small"):
        entries = await publisher.take(count=9, block_ms=None)
        assert [entry.payload for entry in entries] == [payload]
        await publisher.trim(entries)
    for _ in range(3):
        await reader.append(b"small")
    await publisher.trim()
    assert len(await publisher.take(count=9, block_ms=None)) == 3


async def test_a_generation_can_be_claimed_only_once(
    publisher: PublisherEnd, reader: ReaderEnd, redis: Redis, pipeline: str
) -> None:
    await publisher.open(START)
    assert await reader.claim() == START
    assert await ReaderEnd(redis, pipeline).claim() is None


async def test_a_deposed_reader_cannot_append(publisher: PublisherEnd, reader: ReaderEnd) -> None:
    await publisher.open(START)
    await reader.claim()
    await reader.append(b"mine")
    await publisher.open(START)
    with pytest.raises(GenerationLost):
        await reader.append(b"late")
    with pytest.raises(GenerationLost):
        await reader.backlog()
    assert await publisher.take(count=9, block_ms=1) == []


async def test_a_deposed_publisher_cannot_take_entries(publisher: PublisherEnd, redis: Redis, pipeline: str) -> None:
    await publisher.open(START)
    await PublisherEnd(redis, pipeline).open(START)
    with pytest.raises(GenerationLost):
        await publisher.take(count=9, block_ms=1)


async def test_a_retired_generation_is_lost_for_the_publisher(publisher: PublisherEnd, reader: ReaderEnd) -> None:
    await publisher.open(START)
    await reader.claim()
    await reader.append(b"never taken")
    await reader.end_any_generation()
    with pytest.raises(GenerationLost):
        await publisher.take(count=9, block_ms=1)


async def _is_blocked(redis: Redis) -> bool:
    return (await redis.info("clients"))["blocked_clients"] > 0


async def test_a_publisher_that_waits_for_an_entry_notices_at_once_that_its_generation_is_retired(
    publisher: PublisherEnd, reader: ReaderEnd, redis: Redis
) -> None:
    await publisher.open(START)
    await reader.claim()
    await reader.append(b"one")
    await publisher.take(count=9, block_ms=None)
    async with asyncio.timeout(10):
        waiting = asyncio.create_task(publisher.take(count=9, block_ms=60_000))
        await eventually(partial(_is_blocked, redis))
        await reader.end_generation()
        with pytest.raises(GenerationLost, match="the reader has ended the generation"):
            await waiting
    await publisher.open(START)
    assert await publisher.take(count=9, block_ms=None) == []


async def test_reader_and_publisher_notice_that_redis_lost_writes(
    publisher: PublisherEnd, reader: ReaderEnd, redis: Redis, pipeline: str
) -> None:
    stream, generation = names.stream_key(pipeline), names.generation_key(pipeline)
    await publisher.open(START)
    await reader.claim()
    await reader.append(b"one")
    await reader.append(b"two")
    # As after a failover to a replica that lacks the last entry.
    await redis.xdel(stream, "2-0")
    await redis.hset(generation, "next", "1")
    with pytest.raises(GenerationLost):
        await reader.append(b"three")
    # Add an entry that the functions of this Redis would refuse to append.
    token, claim = await redis.hmget(generation, "token", "claim")
    await redis.xadd(stream, {"token": token, "claim": claim, "payload": b"three"}, id="3-0")
    with pytest.raises(GenerationLost, match="entry 2 instead of 1"):
        await publisher.take(count=9, block_ms=None)


async def test_a_reader_can_end_a_generation_of_which_redis_lost_writes(
    publisher: PublisherEnd, reader: ReaderEnd, redis: Redis, pipeline: str
) -> None:
    await publisher.open(START)
    await reader.claim()
    await reader.append(b"one")
    assert len(await publisher.take(count=9, block_ms=None)) == 1
    await redis.delete(names.stream_key(pipeline))
    await redis.hset(names.generation_key(pipeline), "next", "0")  # its value before the entry was appended
    with pytest.raises(GenerationLost):
        await reader.append(b"two")
    assert await reader.claim() is None  # its own earlier claim blocks the generation
    await reader.end_generation()
    with pytest.raises(GenerationLost):
        await publisher.take(count=9, block_ms=1)


async def test_giving_up_an_old_generation_does_not_end_a_newer_one(publisher: PublisherEnd, reader: ReaderEnd) -> None:
    await publisher.open(START)
    await reader.claim()
    await publisher.open(START)
    await reader.end_generation()
    assert await reader.claim() == START


async def test_a_flushed_redis_ends_the_generation_and_a_new_one_can_be_opened(
    publisher: PublisherEnd, reader: ReaderEnd, redis: Redis
) -> None:
    await publisher.open(START)
    await reader.claim()
    await redis.flushdb()
    await redis.function_flush()
    with pytest.raises(GenerationLost):
        await reader.append(b"one")
    with pytest.raises(GenerationLost):
        await publisher.take(count=9, block_ms=1)
    await publisher.open(START)
    assert await reader.claim() == START


async def test_the_error_of_an_unreachable_redis_names_the_setting(pipeline: str) -> None:
    async with Redis.from_url("redis://127.0.0.1:1/0") as unreachable:
        with pytest.raises(RedisUnavailable, match=r"redis\.url"):
            await ReaderEnd(unreachable, pipeline).end_any_generation()


async def test_everything_but_appending_works_when_redis_has_no_memory_left(
    publisher: PublisherEnd, reader: ReaderEnd, redis: Redis
) -> None:
    await publisher.open(START)
    await reader.claim()
    await reader.append(b"one")
    await redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(RedisUnavailable):
            await reader.append(b"two")
        entries = await publisher.take(count=9, block_ms=None)
        assert [entry.payload for entry in entries] == [b"one"]
        await publisher.trim(entries)
        assert await reader.backlog() == 0
        await publisher.open(START)
        assert await reader.claim() == START
        await reader.end_any_generation()
        with pytest.raises(GenerationLost):
            await publisher.trim()
    finally:
        await redis.config_set("maxmemory", 0)


async def test_the_url_may_name_a_unix_socket(tmp_path: Path, pipeline: str) -> None:
    stack, socket = Stack(tmp_path / "stack", own=True), tmp_path / "redis"
    stack.start("redis", "--unixsocket", str(socket))
    try:
        settings = Settings.model_validate({"name": "shop", "redis": {"url": f"unix://{socket}?db=0"}})
        async with connect_redis(settings.redis) as redis, asyncio.timeout(10):
            publisher, reader = PublisherEnd(redis, pipeline), ReaderEnd(redis, pipeline)
            await publisher.open(START)
            assert await reader.claim() == START
            await reader.append(b"one")
            assert [entry.payload for entry in await publisher.take(count=9, block_ms=None)] == [b"one"]
    finally:
        stack.stop("redis")

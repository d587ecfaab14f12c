"""T29: Redis or Kafka is away while rows are written: memory is bounded, no row is lost, the services count as alive.

The limits are low, so the tests need not wait for minutes: they write many times what reader and Redis may hold.
"""

import asyncio
import re
import secrets
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from redis.asyncio import Redis

from common.fork_server import ForkServer
from common.waiting import eventually
from devstack import Kind, Stack
from devstack.pipeline import Pipeline, Service
from devstack.replication import Pair, run

_BACKLOG = 4 * 2**20
_ROWS, _ROW_BYTES = 200, 300_000
_MEMORY = 200 * 2**20
_SERVICES: tuple[Service, ...] = ("reader", "publisher")


@pytest.fixture
async def pipeline(tmp_path: Path, mariadb_pair: Pair, own: Stack, fork_server: ForkServer) -> AsyncIterator[Pipeline]:
    """A pipeline over an empty table, on servers that may be killed."""
    name, source = f"t29_{secrets.token_hex(4)}", mariadb_pair.primary
    await run(source, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, text LONGTEXT)")
    pipeline = Pipeline(
        tmp_path / "pipeline",
        source=source,
        redis=await asyncio.to_thread(own.start, "redis"),
        kafka=await asyncio.to_thread(own.start, "kafka"),
        name=name,
        include=(f"{name}.*",),
        overrides={"reader": {"backlog_limit": _BACKLOG}},
        launch=fork_server.spawn,
    )
    yield pipeline
    for service in _SERVICES:
        await asyncio.to_thread(pipeline.kill, service)
    await run(source, f"DROP DATABASE {name}")


def memory(pipeline: Pipeline) -> list[int]:
    """Return the peak memory of each service so far, in bytes."""
    status = [Path(f"/proc/{pipeline.pid(service)}/status").read_text() for service in _SERVICES]
    return [int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) * 1024 for text in status]


async def alive(pipeline: Pipeline) -> bool:
    answers = [await asyncio.to_thread(pipeline.get, service, "/healthz") for service in _SERVICES]
    return all(answer.status_code == 200 for answer in answers)


async def not_ready(pipeline: Pipeline, service: Service) -> None:
    """Wait until a service says that it cannot work."""

    async def refuses() -> bool:
        return (await asyncio.to_thread(pipeline.get, service, "/readyz")).status_code != 200

    await eventually(refuses)


async def arrived(pipeline: Pipeline, count: int) -> list[int]:
    """Wait for this many rows and return their numbers: the lengths of their texts, less _ROW_BYTES."""
    lengths: list[int] = []
    partition = TopicPartition(f"{pipeline.name}.{pipeline.name}.t", 0)
    async with (
        AIOKafkaConsumer(bootstrap_servers=pipeline.kafka.url, isolation_level="read_committed") as consumer,
        asyncio.timeout(120),
    ):
        consumer.assign([partition])
        consumer.seek(partition, 0)
        while len(lengths) < count:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                rows = [row for record in records for row in msgspec.json.decode(record.value)["Rows"]]
                lengths += [len(b64decode(text)) - _ROW_BYTES for _, text in rows]
    return lengths


@pytest.mark.parametrize("kind", ["redis", pytest.param("kafka", marks=pytest.mark.slow)])
async def test_t29_while_a_dependency_is_away_memory_is_bounded_and_nothing_is_lost(
    pipeline: Pipeline, own: Stack, kind: Kind
) -> None:
    insert = f"INSERT INTO {pipeline.name}.t VALUES (%s, REPEAT('x', %s))"
    await asyncio.to_thread(pipeline.start_all, *_SERVICES)
    await run(pipeline.source, (insert, 0, _ROW_BYTES))
    assert await arrived(pipeline, 1) == [0]

    await asyncio.to_thread(own.kill, kind)
    await run(pipeline.source, *((insert, number, _ROW_BYTES + number) for number in range(1, _ROWS)))
    await not_ready(pipeline, "publisher")
    assert await alive(pipeline)
    if kind == "kafka":
        async with Redis.from_url(pipeline.redis.url) as redis:
            assert (await redis.info("memory"))["used_memory"] < 4 * _BACKLOG
    await asyncio.to_thread(own.start, kind)

    assert await arrived(pipeline, _ROWS) == list(range(_ROWS))
    assert max(memory(pipeline)) < _MEMORY

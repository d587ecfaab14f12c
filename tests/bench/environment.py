"""Helpers of the pipeline bench: its Redis and Kafka, new pipelines, the check of a topic, the costs of a process."""

import asyncio
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.admin import NewTopic
from delivered import count

from databus_core import kafka_client
from databus_core.settings import Kafka
from devstack import Server, Stack
from devstack.pipeline import Pipeline

_HOME = Path(".devstack/bench")


@dataclass(frozen=True)
class Environment:
    """The bench's Redis and Kafka."""

    redis: Server
    kafka: Server
    #: kind of server → process id; pipeline.py adds its database server
    pids: dict[str, int]


@contextmanager
def environment() -> Iterator[Environment]:
    """Start Redis and Kafka; Redis writes no file, as in compose.yaml."""
    stack = Stack(_HOME / "environment", own=True)
    try:
        redis, kafka = stack.start("redis", "--appendonly", "no"), stack.start("kafka")
        yield Environment(redis, kafka, {status.kind: status.pid for status in stack.status() if status.pid})
    finally:
        stack.stop("redis")
        stack.stop("kafka")


@contextmanager
def pipeline_of(
    server: Server, env: Environment, start: str, publisher: Mapping[str, Any] | None = None, **overrides: Any
) -> Iterator[Pipeline]:
    """Configure a new pipeline, which has no progress yet; its services are killed at the end of the block."""
    name = f"bench-{secrets.token_hex(4)}"
    servers = {"source": server, "redis": env.redis, "kafka": env.kafka}
    options = {
        "include": ("bench.*",),
        "overrides": {"reader": {"start": start}, "publisher": publisher or {}} | overrides,
    }
    pipeline = Pipeline(_HOME / "pipelines" / name, name=name, **servers, **options)
    try:
        yield pipeline
    finally:
        pipeline.kill("reader")
        pipeline.kill("publisher")


def create(kafka: Server, topic: str) -> None:
    """Create a topic with one partition, so that the first message need not wait for the topic."""

    async def work() -> None:
        async with kafka_client.admin(Kafka(bootstrap_servers=[kafka.url])) as admin:
            await admin.create_topics([NewTopic(topic, 1, 1)])

    asyncio.run(work())


def verify(producer: str, kafka: Server, topic: str, images: Callable[[bytes], int], expected: int) -> None:
    """Delete a topic, and fail the bench unless it had exactly the expected number of row images."""
    if (found := take(kafka, topic, images)) != expected:
        raise SystemExit(f"bench: {producer} delivered {found} row images instead of {expected}")


def take(kafka: Server, topic: str, number: Callable[[bytes], int]) -> int:
    """Return the sum of `number` over all messages of a topic, and delete it."""

    async def work() -> int:
        found = await count(kafka, topic, number)
        async with kafka_client.admin(Kafka(bootstrap_servers=[kafka.url])) as admin:
            await admin.delete_topics([topic])
        return found

    return asyncio.run(work())


def cpu(pid: int) -> float:
    """Return the CPU time that a process has used, user and system, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # from field 3 on, see proc(5)
    user, system = int(fields[14 - 3]), int(fields[15 - 3])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def peak_memory(pid: int) -> int:
    """Return the peak memory of a process, in bytes."""
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024

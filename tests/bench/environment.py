"""What the runs of the pipeline bench share: Redis, Kafka, pipelines of their own, and processors' time."""

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka.admin import NewTopic
from delivered import count

from databus import kafka_client
from databus.settings import Kafka
from devstack import Server, Stack
from devstack.pipeline import Pipeline

_HOME = Path(".devstack/bench")


@dataclass(frozen=True)
class Environment:
    """Redis and Kafka of a bench, and the processes of all servers."""

    redis: Server
    kafka: Server
    pids: dict[str, int]


@contextmanager
def environment() -> Iterator[Environment]:
    """Start Redis and Kafka; Redis without a file, as in compose.yaml: it is only a pipe."""
    stack = Stack(_HOME / "environment", own=True)
    try:
        redis, kafka = stack.start("redis", "--appendonly", "no"), stack.start("kafka")
        yield Environment(redis, kafka, {status.kind: status.pid for status in stack.status() if status.pid})
    finally:
        stack.stop("redis")
        stack.stop("kafka")


@contextmanager
def pipeline_of(
    server: Server, env: Environment, start: str, publisher: Mapping[str, Any] | None = None
) -> Iterator[Pipeline]:
    """Configure a pipeline that has no progress yet; its services end with the block."""
    name = f"bench-{secrets.token_hex(4)}"
    servers = {"source": server, "redis": env.redis, "kafka": env.kafka}
    only = {"include": ("bench.*",), "overrides": {"reader": {"start": start}, "publisher": publisher or {}}}
    pipeline = Pipeline(_HOME / "pipelines" / name, name=name, **servers, **only)
    try:
        yield pipeline
    finally:
        pipeline.kill("reader")
        pipeline.kill("publisher")


def create(kafka: Server, topic: str) -> None:
    """Create a topic of one partition, so that nobody's first message has to wait for it."""

    async def work() -> None:
        async with kafka_client.admin(Kafka(bootstrap_servers=[kafka.url])) as admin:
            await admin.create_topics([NewTopic(topic, 1, 1)])

    asyncio.run(work())


def verify(who: str, kafka: Server, topic: str, images: Callable[[bytes], int], wanted: int) -> None:
    """See that a topic has the row images that were written, no less and no more, and delete it."""

    async def work() -> int:
        found = await count(kafka, topic, images)
        async with kafka_client.admin(Kafka(bootstrap_servers=[kafka.url])) as admin:
            await admin.delete_topics([topic])
        return found

    if (found := asyncio.run(work())) != wanted:
        raise SystemExit(f"bench: {who} delivered {found} row images instead of {wanted}")


def cpu(pid: int) -> float:
    """Tell the processor time that a process has used, user and system, in seconds: proc(5), fields 14 and 15."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

"""A pipeline as its users see it: dumps over HTTP, progress in Kafka, the sink's metrics."""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

import httpx
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from devstack.demo import shop
from devstack.pipeline import Pipeline, Service
from devstack.server import DevstackError, Server

_TIMEOUT_SECONDS = 600
_POLL_SECONDS = 0.2
_SINK_OFFSET = re.compile(r'^databus_sink_offset\{partition="(\d+)",.*topic="([^"]+)"\} (\S+)$', re.MULTILINE)


class Deployed(Protocol):
    """A running pipeline: a Pipeline, or one in containers."""

    @property
    def name(self) -> str:
        """The pipeline's name."""

    @property
    def kafka(self) -> Server:
        """Its Kafka."""

    def url(self, service: Service) -> str:
        """Return the URL of a service's HTTP server."""

    def wait(self, service: Service) -> None:
        """Wait until a service is ready. Raises DevstackError if it ends."""


async def take_dump(pipeline: Pipeline) -> dict[str, Any]:
    """Request a dump, wait until it is complete, and return its manifest."""
    async with (
        httpx.AsyncClient(base_url=pipeline.url("dump-api"), timeout=30) as http,
        asyncio.timeout(_TIMEOUT_SECONDS),
    ):
        dump = (await http.post("/v1/dumps", json={})).raise_for_status().json()
        while dump["state"] in {"pending", "running"}:
            await asyncio.sleep(_POLL_SECONDS)
            dump = (await http.get(f"/v1/dumps/{dump['id']}")).raise_for_status().json()
    if dump["state"] != "complete":
        raise DevstackError(f"the dump failed: {dump['error']}; see {pipeline.log('dump-api')}")
    return dict(dump)


async def download(pipeline: Pipeline, dump: str, file: dict[str, Any]) -> int:
    """Download a file of a dump, verify its checksum, and return its size in bytes."""
    digest, size = hashlib.sha256(), 0
    url = f"{pipeline.url('dump-api')}/v1/dumps/{dump}/files/{file['name']}"
    async with httpx.AsyncClient(timeout=30) as http, http.stream("GET", url) as answer:
        answer.raise_for_status()
        async for part in answer.aiter_raw():
            digest.update(part)
            size += len(part)
    if digest.hexdigest() != file["sha256"]:
        raise DevstackError(f"the checksum of file {file['name']} of dump {dump} differs from that in the manifest")
    return size


async def progress(pipeline: Deployed) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the committed progress records that the topic has, then each new one."""
    topic = TopicPartition(f"databus.progress.{pipeline.name}", 0)
    consumer = AIOKafkaConsumer(bootstrap_servers=pipeline.kafka.url, isolation_level="read_committed", group_id=None)
    async with consumer:
        consumer.assign([topic])
        await consumer.seek_to_beginning(topic)
        async for record in consumer:
            yield json.loads(record.value)


async def until_published(source: Server, pipeline: Deployed) -> None:
    """Wait until the pipeline's progress reaches the end that the binlog has at the call."""
    connection = await shop.connect(source)
    async with connection, connection.cursor() as cursor:
        await cursor.execute("SHOW BINARY LOG STATUS" if source.kind == "mysql" else "SHOW MASTER STATUS")
        file, offset, *_ = await cursor.fetchone()
    async with asyncio.timeout(_TIMEOUT_SECONDS), aclosing(progress(pipeline)) as records:
        async for record in records:
            position = record["position"]
            if not position or not position["file"]:  # with `start: earliest` the first one has no name yet
                continue
            if (_number(position["file"]), position["offset"]) >= (_number(file), int(offset)):
                return


def _number(file: str) -> int:
    return int(file.rpartition(".")[2])


async def until_in_lake(pipeline: Deployed) -> None:
    """Wait until the sink has read the topics of all tables to the ends that they have at the call."""
    # a consumer with `read_committed` may be told ends without a transaction that Kafka is still committing
    async with AIOKafkaConsumer(bootstrap_servers=pipeline.kafka.url) as consumer:
        topics = [name for name in await consumer.topics() if name.startswith(f"{pipeline.name}.")]
        ends = await consumer.end_offsets(await _partitions(pipeline, topics))
    async with (
        httpx.AsyncClient(base_url=pipeline.url("spark-sink"), timeout=30) as http,
        asyncio.timeout(_TIMEOUT_SECONDS),
    ):
        while True:
            try:
                metrics = (await http.get("/metrics")).text
            except httpx.TransportError:
                await asyncio.to_thread(pipeline.wait, "spark-sink")  # raises an error if the sink has ended
                continue
            read = {(topic, int(each)): float(offset) for each, topic, offset in _SINK_OFFSET.findall(metrics)}
            if all(read.get((partition.topic, partition.partition), 0) >= end for partition, end in ends.items()):
                return
            await asyncio.sleep(_POLL_SECONDS)


async def _partitions(pipeline: Deployed, topics: list[str]) -> list[TopicPartition]:
    admin = AIOKafkaAdminClient(bootstrap_servers=pipeline.kafka.url)
    await admin.start()
    try:
        found = await admin.describe_topics(topics)
    finally:
        await admin.close()
    return [TopicPartition(topic["topic"], each["partition"]) for topic in found for each in topic["partitions"]]

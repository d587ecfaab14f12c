"""Reads a topic as a consumer with Confluent's deserializer does: all schemas come from the schema registry."""

import asyncio
import io
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import fastavro
import httpx
from aiokafka import AIOKafkaConsumer, TopicPartition

from devstack import Server


class AvroConsumer:
    """Reads committed records from the beginning; decodes keys and values with the schemas whose ids precede them."""

    def __init__(self, kafka: AIOKafkaConsumer, registry: httpx.AsyncClient) -> None:
        self._kafka, self._registry = kafka, registry
        #: schema ids of the values read so far
        self.ids: list[int] = []

    async def read(self, count: int) -> list[tuple[Any, Any]]:
        """Return key and value of the next records; the value of a tombstone is None."""
        async with asyncio.timeout(90):
            records = [await self._kafka.getone() for _ in range(count)]
        pairs = []
        for record in records:
            _, key = await self._decoded(record.key)
            number, value = await self._decoded(record.value) if record.value is not None else (0, None)
            self.ids += [number] if number else []
            pairs.append((key, value))
        return pairs

    async def _decoded(self, data: bytes) -> tuple[int, Any]:
        zero, number = struct.unpack_from(">bI", data)
        assert zero == 0
        answer = (await self._registry.get(f"/schemas/ids/{number}")).raise_for_status().json()
        rest = io.BytesIO(data[5:])
        value = fastavro.schemaless_reader(rest, fastavro.parse_schema(json.loads(answer["schema"])))
        assert not rest.read()
        return number, value


@asynccontextmanager
async def avro_consumer(kafka: Server, registry: Server, topic: str) -> AsyncIterator[AvroConsumer]:
    """Return a consumer of partition 0 of a topic."""
    async with (
        httpx.AsyncClient(base_url=registry.url) as client,
        AIOKafkaConsumer(bootstrap_servers=kafka.url, isolation_level="read_committed") as consumer,
    ):
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        yield AvroConsumer(consumer, client)

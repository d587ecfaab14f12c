"""What arrived in Kafka: how far a pipeline is, and how many row images a topic holds. Reads as consumers do."""

from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from served import Log

from databus.progress import decode_progress
from devstack import Server


class _Ours(msgspec.Struct):
    """A message of the `databus` format; DDL has no rows."""

    rows: list[list[str | None]] = msgspec.field(default_factory=list, name="Rows")


class _Baseline(msgspec.Struct):
    """A message of baseline.py; a row of an update is both of its images."""

    event: str
    rows: list[msgspec.Raw]


class _Debezium(msgspec.Struct):
    """A row of the `debezium-json` format, without schemas."""

    before: msgspec.Raw
    after: msgspec.Raw


class _Maxwell(msgspec.Struct):
    """A row of the `maxwell-json` format."""

    type: str


_ours = msgspec.json.Decoder(_Ours).decode
_baseline = msgspec.json.Decoder(_Baseline).decode
_debezium = msgspec.json.Decoder(_Debezium).decode
_maxwell = msgspec.json.Decoder(_Maxwell).decode


def our_images(message: bytes) -> int:
    """Count the row images of a message of ours."""
    return len(_ours(message).rows)


def our_ids(message: bytes) -> list[int]:
    """Read the first column, a number, of all row images in a message of ours."""
    return [int(b64decode(row[0])) for row in _ours(message).rows]


def debezium_images(message: bytes | None) -> int:
    """Count the row images of a message of Debezium's: both, one, or none in a tombstone."""
    if message is None:
        return 0
    row = _debezium(message)
    return (bytes(row.before) != b"null") + (bytes(row.after) != b"null")


def maxwell_images(message: bytes) -> int:
    """Count the row images of a message of Maxwell's: of an update it has what changed."""
    return {"insert": 1, "update": 2, "delete": 1}.get(_maxwell(message).type, 0)


def baseline_images(message: bytes) -> int:
    """Count the row images of a message of the baseline."""
    change = _baseline(message)
    return len(change.rows) * (2 if change.event == "UpdateRowsEvent" else 1)


@asynccontextmanager
async def consuming(kafka: Server, topic: str, **start: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """Consume a topic of one partition from its beginning, without what is not committed."""
    options = {"isolation_level": "read_committed", "auto_offset_reset": "earliest", "group_id": None}
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.url, **options | start)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        yield consumer
    finally:
        await consumer.stop()


async def reached(progress: AIOKafkaConsumer, log: Log) -> None:
    """Wait until a pipeline has committed the end of the workload."""
    while True:
        for records in (await progress.getmany(timeout_ms=60_000)).values():
            position = decode_progress(records[-1].value).position
            if position and (position.file, position.offset) >= (log.file, log.size):
                return


async def count(kafka: Server, topic: str, images: Callable[[bytes], int]) -> int:
    """Count the row images in a topic."""
    found, partition = 0, TopicPartition(topic, 0)
    async with consuming(kafka, topic, fetch_max_bytes=2**25, max_partition_fetch_bytes=2**25) as consumer:
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                found += sum(images(record.value) for record in records)
    return found

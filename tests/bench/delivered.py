"""Consumers for the benches: one waits for a pipeline's progress, one counts the row images in a topic."""

from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from served import Log

from databus_core.progress import decode_progress
from devstack import Server


class _Ours(msgspec.Struct):
    """A message of the `databus` format; DDL has no rows."""

    rows: list[list[str | None]] = msgspec.field(default_factory=list, name="Rows")


class _Baseline(msgspec.Struct):
    """A message of baseline.py; each of an update's `rows` has both images."""

    event: str
    rows: list[msgspec.Raw]


class _Debezium(msgspec.Struct):
    """A message of the `debezium-json` format, without schemas; it has one row."""

    before: msgspec.Raw
    after: msgspec.Raw


class _Maxwell(msgspec.Struct):
    """A message of the `maxwell-json` format; it has one row."""

    type: str


_ours = msgspec.json.Decoder(_Ours).decode
_baseline = msgspec.json.Decoder(_Baseline).decode
_debezium = msgspec.json.Decoder(_Debezium).decode
_maxwell = msgspec.json.Decoder(_Maxwell).decode


def our_images(message: bytes) -> int:
    """Count the row images of a message in the `databus` format."""
    return len(_ours(message).rows)


def our_ids(message: bytes) -> list[int]:
    """Return the first column, an integer, of each row image of a message in the `databus` format."""
    return [int(b64decode(row[0])) for row in _ours(message).rows]


def debezium_images(message: bytes | None) -> int:
    """Count the row images of a Debezium message: two for an update, none for a tombstone, else one."""
    if message is None:
        return 0
    row = _debezium(message)
    return (bytes(row.before) != b"null") + (bytes(row.after) != b"null")


def maxwell_images(message: bytes) -> int:
    """Count the row images of a Maxwell message; an update counts as two, although `old` has changed columns only."""
    return {"insert": 1, "update": 2, "delete": 1}.get(_maxwell(message).type, 0)


def baseline_images(message: bytes) -> int:
    """Count the row images of a message of baseline.py."""
    change = _baseline(message)
    return len(change.rows) * (2 if change.event == "UpdateRowsEvent" else 1)


@asynccontextmanager
async def consuming(kafka: Server, topic: str, **more_options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """Consume the committed records of a topic with one partition, from its beginning."""
    options = {"isolation_level": "read_committed", "auto_offset_reset": "earliest", "group_id": None}
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.url, **options | more_options)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        yield consumer
    finally:
        await consumer.stop()


async def wait_until_committed(progress: AIOKafkaConsumer, log: Log) -> None:
    """Wait until a pipeline's committed progress reaches the end of the log; `progress` consumes its progress topic."""
    while True:
        for records in (await progress.getmany(timeout_ms=60_000)).values():
            position = decode_progress(records[-1].value).position
            if position and (position.file, position.offset) >= (log.file, log.size):
                return


async def count(kafka: Server, topic: str, number: Callable[[bytes], int]) -> int:
    """Return the sum of `number` over all messages of a topic."""
    found, partition = 0, TopicPartition(topic, 0)
    async with consuming(kafka, topic, fetch_max_bytes=2**25, max_partition_fetch_bytes=2**25) as consumer:
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                found += sum(number(record.value) for record in records)
    return found

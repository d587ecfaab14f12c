"""Reads the transaction of each record of a partition from its header. Only records of the publisher have one."""

import re
from collections.abc import AsyncGenerator, Mapping

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from databus_core import kafka_client, names
from databus_spark.sequences import transaction_of

_SEQUENCE = re.compile(rb"\d{16}-\d{10}")


async def transactions(
    consumer: AIOKafkaConsumer, partition: TopicPartition, begin: int, end: int
) -> AsyncGenerator[tuple[int, int]]:
    """Yield transaction and offset of each record between two offsets that has a transaction."""
    consumer.assign([partition])
    async for record in kafka_client.records(consumer, {partition: (begin, end)}):
        if (transaction := _transaction(record)) is not None:
            yield transaction, record.offset


async def highest_transactions(
    consumer: AIOKafkaConsumer, ranges: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, int]:
    """Return the highest transaction between two offsets of each partition that has one there."""
    consumer.assign(list(ranges))
    highest: dict[TopicPartition, int] = {}
    async for record in kafka_client.records(consumer, ranges):
        if (transaction := _transaction(record)) is not None:
            partition = TopicPartition(record.topic, record.partition)
            highest[partition] = max(transaction, highest.get(partition, transaction))
    return highest


def _transaction(record: "ConsumerRecord[object, object]") -> int | None:
    text = next((value for key, value in record.headers if key == names.SEQUENCE_HEADER), b"")
    return transaction_of(text.decode()) if _SEQUENCE.fullmatch(text) else None

"""The ends of topics."""

from collections.abc import Collection

from aiokafka import AIOKafkaConsumer, TopicPartition

from devstack import Server


async def ends_of(kafka: Server, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the ends of partitions, with the records of transactions that Kafka is still committing.

    The ends that a `read_committed` consumer is told may lack the last transaction of a publisher that has just ended.
    """
    async with AIOKafkaConsumer(bootstrap_servers=kafka.url) as consumer:
        ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
    return ends

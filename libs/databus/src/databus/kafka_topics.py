"""Which topics exist, their offsets and their settings."""

import asyncio
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

#: Kafka's default of max.message.bytes
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
#: how many times the settings of a topic are requested at most, every 0.1 s, until the broker knows the topic
_TRIES = 20


async def partition_counts(admin: AIOKafkaAdminClient) -> dict[str, int]:
    """List all topics, each with the number of its partitions.

    A request for one topic by its name would create it on brokers with `auto.create.topics.enable`.
    """
    return {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}


async def partitions_of(admin: AIOKafkaAdminClient, wanted: Callable[[str], bool]) -> list[TopicPartition]:
    """List the partitions of all existing topics for whose names `wanted` is true."""
    counts = await partition_counts(admin)
    return [
        TopicPartition(topic, number) for topic, count in counts.items() if wanted(topic) for number in range(count)
    ]


async def offsets_of(consumer: AIOKafkaConsumer, partition: TopicPartition) -> tuple[int, int] | None:
    """Return the first offset of a partition and its end; None if the topic does not exist.

    The end is the last stable offset for a `read_committed` consumer, else the high watermark.
    """
    if partition.topic not in await consumer.topics():  # see partition_counts
        return None
    begin = await consumer.beginning_offsets([partition])
    end = await consumer.end_offsets([partition])
    return begin[partition], end[partition]


async def topic_settings(admin: AIOKafkaAdminClient, topic: str) -> dict[str, str]:
    """Read the effective settings of an existing topic. Retries for 2 s, because a broker may not know it yet."""
    error: type[Exception] = UnknownTopicOrPartitionError
    for _ in range(_TRIES):
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        code, _, _, _, entries = answer.resources[0]
        if not code:
            return {name: str(value) for name, value, *_ in entries}
        error = for_code(code)
        if error is not UnknownTopicOrPartitionError:
            break
        await asyncio.sleep(0.1)
    raise error(f"the settings of topic {topic} cannot be read")


async def max_batch_bytes(admin: AIOKafkaAdminClient, topic: str) -> int:
    """Read how many bytes a batch in this topic may have; without the right to read that, return Kafka's default."""
    try:
        settings = await topic_settings(admin, topic)
    except (ClusterAuthorizationFailedError, TopicAuthorizationFailedError):
        return DEFAULT_MAX_MESSAGE_BYTES
    limits = (settings.get(name, "") for name in ("max.message.bytes", "segment.bytes"))
    return min((int(limit) for limit in limits if limit.isdecimal()), default=DEFAULT_MAX_MESSAGE_BYTES)

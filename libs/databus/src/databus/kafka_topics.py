"""What Kafka's administration tells about topics."""

import asyncio

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

#: max.message.bytes where nobody set it
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
_TRIES = 20


async def partition_counts(admin: AIOKafkaAdminClient) -> dict[str, int]:
    """Count the partitions of all topics; asking for one by its name would make many brokers create it."""
    return {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}


async def topic_settings(admin: AIOKafkaAdminClient, topic: str) -> dict[str, str]:
    """Give the settings that hold for a topic, which exists; a broker may not know yet of a new one."""
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
    raise error(f"configuration of topic {topic}")


async def max_batch_bytes(admin: AIOKafkaAdminClient, topic: str) -> int:
    """Give the size of the largest batch that a topic takes; Kafka's default if we may not ask."""
    try:
        settings = await topic_settings(admin, topic)
    except (ClusterAuthorizationFailedError, TopicAuthorizationFailedError):
        return DEFAULT_MAX_MESSAGE_BYTES
    limits = (settings.get(name, "") for name in ("max.message.bytes", "segment.bytes"))
    return min((int(limit) for limit in limits if limit.isdecimal()), default=DEFAULT_MAX_MESSAGE_BYTES)

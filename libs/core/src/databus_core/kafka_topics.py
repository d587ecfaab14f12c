"""Which topics exist, their offsets and their settings; and how topics are created."""

import asyncio
from collections.abc import Callable, Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidTopicError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

from databus_core.errors import FatalError, TopicNameRefused, TopicRefused

#: Kafka's default of max.message.bytes
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
#: how many times the settings of a topic are requested at most, every 0.1 s, until the broker knows the topic
_TRIES = 20
#: bytes of a segment of a topic with a pipeline's state; small, because Kafka never compacts the active segment, and
#: the reader reads the whole schema history
_STATE_SEGMENT = 8 * 2**20


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


async def broker_settings(admin: AIOKafkaAdminClient) -> dict[str, str]:
    """Read the settings of one broker; empty without the right to read them."""
    [broker, *_] = (await admin.describe_cluster())["brokers"]
    (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, str(broker["node_id"]))])
    code, _, _, _, entries = answer.resources[0]
    return {} if code else {name: str(value) for name, value, *_ in entries}


async def max_batch_bytes(admin: AIOKafkaAdminClient, topic: str) -> int:
    """Read how many bytes a batch in this topic may have; without the right to read that, return Kafka's default."""
    try:
        settings = await topic_settings(admin, topic)
    except (ClusterAuthorizationFailedError, TopicAuthorizationFailedError):
        return DEFAULT_MAX_MESSAGE_BYTES
    limits = (settings.get(name, "") for name in ("max.message.bytes", "segment.bytes"))
    return min((int(limit) for limit in limits if limit.isdecimal()), default=DEFAULT_MAX_MESSAGE_BYTES)


async def create_topic(
    admin: AIOKafkaAdminClient,
    topic: str,
    partitions: int,
    settings: Mapping[str, str],
    replication_factor: int,
    *,
    validate_only: bool = False,
) -> None:
    """Create a topic unless it exists. A replication factor of -1 is the broker's default.

    validate_only: ask only whether Kafka would create it.

    Raises TopicNameRefused if Kafka refuses the name, TopicRefused if it refuses for another reason.
    """
    # aiokafka accepts -1 only together with an explicit (here: empty) assignment.
    assignment: dict[int, list[int]] | None = {} if replication_factor == -1 else None
    topics = [NewTopic(topic, partitions, replication_factor, assignment, dict(settings))]
    answer = await admin.create_topics(topics, validate_only=validate_only)
    for name, code, *details in answer.topic_errors:
        error = for_code(code)
        if error.retriable:
            raise error(f"while topic {name} was created")
        if code and error is not TopicAlreadyExistsError:
            refused = TopicNameRefused if error is InvalidTopicError else TopicRefused
            raise refused(f"Kafka refused to create topic {name}: {details[0] if details else error.__name__}")


async def ensure_compacted(
    admin: AIOKafkaAdminClient, topic: str, replication_factor: int, *, validate_only: bool = False
) -> None:
    """Create a topic for a pipeline's state, or verify it: one partition, compacted.

    validate_only: if it is missing, ask only whether Kafka would create it.

    Raises FatalError if Kafka refuses to create the topic, or if it exists but differs: a topic with retention would
    lose the state.
    """
    partitions = (await partition_counts(admin)).get(topic)
    if partitions is None:
        settings = {"cleanup.policy": "compact", "segment.bytes": str(_STATE_SEGMENT)}
        await create_topic(admin, topic, 1, settings, replication_factor, validate_only=validate_only)
        return
    policy = (await topic_settings(admin, topic))["cleanup.policy"]
    if policy != "compact" or partitions != 1:
        raise FatalError(
            f"topic {topic} must have 1 partition and cleanup.policy=compact, but has {partitions} and {policy}: "
            "alter it, or delete it and run `databus pipeline reset --to latest` to start over"
        )

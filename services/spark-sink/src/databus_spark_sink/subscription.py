"""Which of Kafka's topics are read, and from where: the dump's offsets, else a topic's beginning."""

import re
from collections import defaultdict

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from databus import names
from databus.connections import kafka_errors
from databus.errors import ChangesLost, InvalidSettings
from databus.kafka_client import running
from databus.manifest import Manifest
from databus.settings import Settings
from databus.settings.rules import DEFAULT_OUTPUT
from databus_spark_sink.lake import Lake

#: Spark's number for "the earliest there is"
_EARLIEST = -2


def topic_pattern(settings: Settings) -> str:
    """Build the regular expression of the topics to subscribe to; a table created later has one that matches."""
    rules = (rule for rule in settings.publisher.rules if rule.output == DEFAULT_OUTPUT and not rule.drop)
    templates = [rule.topic for rule in rules if rule.format == "databus"]
    if not templates:
        raise InvalidSettings(
            "publisher.routes: no rule of output default has format databus, which the lake is made of"
        )
    return names.table_topics(templates, settings.name, settings.spark.tables)


async def starting_offsets(settings: Settings, place: Lake, manifest: Manifest) -> str:
    """Give Spark's `startingOffsets`, with every partition there is. Raises ChangesLost or KafkaUnavailable."""
    if place.streaming:
        return "earliest"  # the checkpoint knows better, and Kafka may have dropped what the dump began with
    beginnings = await _beginnings(settings)
    pattern = re.compile(topic_pattern(settings))
    starts = {topic: dict.fromkeys(partitions, _EARLIEST) for topic, partitions in beginnings.items()}
    for topic, offsets in manifest.kafka_offsets.items():
        if not pattern.fullmatch(topic):
            continue
        for partition, offset in offsets.items():
            if offset < beginnings.get(topic, {}).get(partition, offset + 1):
                raise ChangesLost(
                    f"topic {topic}, partition {partition}: Kafka does not hold offset {offset}, where dump "
                    f"{manifest.id} goes on: raise the topic's retention and request a new dump"
                )
            starts[topic][partition] = offset
    return msgspec.json.encode(starts).decode()


async def partitions(settings: Settings) -> list[TopicPartition]:
    """List the partitions of the topics to subscribe to. Raises KafkaUnavailable."""
    pattern = re.compile(topic_pattern(settings))
    with kafka_errors():
        async with running(AIOKafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)) as admin:
            topics = [topic for topic in await admin.describe_topics() if pattern.fullmatch(topic["topic"])]
    return [TopicPartition(t["topic"], p["partition"]) for t in topics for p in t["partitions"]]


async def _beginnings(settings: Settings) -> dict[str, dict[int, int]]:
    """Read the earliest offset of each partition of the topics to subscribe to."""
    of = await partitions(settings)
    with kafka_errors():
        async with running(AIOKafkaConsumer(bootstrap_servers=settings.kafka.bootstrap_servers)) as consumer:
            offsets = await consumer.beginning_offsets(of)
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for partition, offset in offsets.items():
        found[partition.topic][partition.partition] = offset
    return found


async def ping(settings: Settings) -> None:
    """Connect to Kafka. Raises KafkaUnavailable."""
    await _beginnings(settings)

"""Offsets where a program begins, and whether Kafka still has what follows them."""

import time
from collections.abc import Mapping
from contextlib import aclosing

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import ClusterAuthorizationFailedError, TopicAuthorizationFailedError

from databus.merge import sequence_of
from databus.source import Source
from databus_core import kafka_client
from databus_core.errors import ChangesLost
from databus_core.kafka_ends import Offsets, by_topic, stable_ends
from databus_core.kafka_topics import topic_settings


async def ends_of(source: Source) -> Offsets:
    """Read the ends of all partitions, before which no transaction is open."""
    kafka = source.settings.kafka
    async with (
        kafka_client.consumer(kafka, "read_uncommitted") as written,
        kafka_client.consumer(kafka) as committed,
    ):
        timeout = source.settings.publisher.transaction_timeout
        return by_topic(await stable_ends(timeout, written, committed, await source.topics.partitions()))


async def offsets_at(source: Source, time_ms: int, ends: Offsets) -> Offsets:
    """Return the offset of the first record from this time or later in each of these partitions, else their ends."""
    found: Offsets = {topic: dict(partitions) for topic, partitions in ends.items()}
    async with kafka_client.consumer(source.settings.kafka) as consumer:
        for each, first in (await consumer.offsets_for_times(dict.fromkeys(_partitions(ends), time_ms))).items():
            if first:
                found[each.topic][each.partition] = min(first.offset, found[each.topic][each.partition])
    return found


async def require_kept(source: Source, starts: Offsets, ends: Offsets, after: int, since_ms: int) -> None:
    """Raise ChangesLost if Kafka may have deleted records of transactions after `after`.

    None of them is older than `since_ms`, and none is before `starts`.
    """
    async with kafka_client.consumer(source.settings.kafka) as consumer:
        begins = await consumer.beginning_offsets(_partitions(starts))
        # What precedes a record from before the start is from before the start, too.
        in_doubt = {
            each: (begin, ends[each.topic][each.partition])
            for each, begin in begins.items()
            if 0 < begin >= starts[each.topic][each.partition] and each.topic != source.topics.dead_letters
        }
        first = await _first_transactions(consumer, in_doubt)
    for each in in_doubt:
        if first.get(each, after + 1) > after and not await _keeps(source, each.topic, since_ms):
            raise ChangesLost(
                f"start: topic {each.topic}, partition {each.partition}: Kafka may have deleted changes after the "
                "start: begin with a snapshot"
            )


async def _first_transactions(
    consumer: AIOKafkaConsumer, ranges: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, int]:
    """Return the transaction of the first record of each partition that has one."""
    first: dict[TopicPartition, int] = {}
    consumer.assign(list(ranges))
    async with aclosing(kafka_client.records(consumer, ranges)) as records:
        async for record in records:
            first.setdefault(TopicPartition(record.topic, record.partition), int(sequence_of(record)[:16] or 0))
            if len(first) == len(ranges):
                break
    return first


async def _keeps(source: Source, topic: str, since_ms: int) -> bool:
    """Return whether the topic's settings make Kafka keep records from this time on; False if they cannot be read."""
    async with kafka_client.admin(source.settings.kafka) as admin:
        try:
            found = await topic_settings(admin, topic)
        except (ClusterAuthorizationFailedError, TopicAuthorizationFailedError):
            return False
    retention_ms = int(found["retention.ms"])
    by_age = retention_ms < 0 or time.time() * 1000 - since_ms < retention_ms
    return by_age and found["retention.bytes"] == "-1" and found["cleanup.policy"] == "delete"


def _partitions(offsets: Offsets) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for topic, partitions in offsets.items() for partition in partitions]

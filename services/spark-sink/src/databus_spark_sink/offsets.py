"""From a dump to Kafka: up to which offsets a record may be one of what the dump holds already.

The key of a record names its file and offset; compared with the dump's position they tell, as long as both are of one
server. After a failover they are another one's. So the offsets are kept that Kafka had when the pipeline had passed
the position: what comes after them comes after the dump, whatever its key says.
"""

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import TypeAlias

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from databus import names
from databus.connections import kafka_errors
from databus.errors import ChangesLost, DumpUnusable, InvalidSettings
from databus.kafka_client import running
from databus.kafka_progress import read_progress
from databus.manifest import Manifest
from databus.progress import Progress
from databus.rules import DEFAULT_OUTPUT
from databus.settings import Settings
from databus_binlog import GtidSet, Position
from databus_spark_sink.lake import Lake

log = logging.getLogger("databus.sink")

#: topic → partition → offset
Offsets: TypeAlias = dict[str, dict[int, int]]

_PAUSE_SECONDS = 0.5


class Beginning(msgspec.Struct, frozen=True):
    """What the lake began with."""

    manifest: Manifest
    #: from here on all is after the dump, and all of a partition that is missing. None: the pipeline has no GTIDs, and
    #: so no failovers
    passed: Offsets | None = None


def of_server_read(manifest: Manifest, progress: Progress | None) -> bool:
    """Say whether the pipeline reads the server that the dump was taken from, for all that is known."""
    return progress is None or "" in (progress.server, manifest.server) or progress.server == manifest.server


async def wait_until_passed(settings: Settings, manifest: Manifest) -> Offsets | None:
    """Wait until the pipeline has passed the dump's position, and give Kafka's offsets then.

    Nothing is missed by waiting: what comes until then is in the dump. Raises DumpUnusable where the pipeline went on
    at another server before.
    """
    position = manifest.position or Position()
    if not position.gtid_set:
        return None
    held = GtidSet.parse("mysql" if manifest.source.startswith("mysql") else "mariadb", position.gtid_set)
    log.info("waiting until the pipeline has passed the position of dump %s", manifest.id)
    async for progress in _polled(settings):
        if _covers(progress, held, manifest):
            break
        if progress and progress.position and not progress.position.gtid_set:
            return None
    ends = await _decided_ends(settings)
    # Whatever is before them is committed, and so is its progress.
    _covers(await read_progress(settings, whole=True), held, manifest)
    return ends


async def _polled(settings: Settings) -> AsyncIterator[Progress | None]:
    while True:
        yield await read_progress(settings)
        await asyncio.sleep(_PAUSE_SECONDS)


def _covers(progress: Progress | None, held: GtidSet, manifest: Manifest) -> bool:
    if not of_server_read(manifest, progress):
        raise DumpUnusable(f"the pipeline went on at another server after dump {manifest.id}: request a new dump")
    if progress is None or progress.position is None:
        return False
    return type(held).from_text(progress.position.gtid_set).covers(held)


async def _decided_ends(settings: Settings) -> Offsets:
    """Read where the topics end, and wait until all before that is committed or aborted. Raises KafkaUnavailable."""
    servers = settings.kafka.bootstrap_servers
    with kafka_errors():
        async with (
            running(AIOKafkaConsumer(bootstrap_servers=servers)) as written,
            running(AIOKafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")) as committed,
        ):
            ends: dict[TopicPartition, int] = await written.end_offsets(await partitions(settings))
            decided = await committed.end_offsets(list(ends))
            while any(decided[at] < end for at, end in ends.items()):
                await asyncio.sleep(_PAUSE_SECONDS)
                decided = await committed.end_offsets(list(ends))
    offsets: Offsets = {}
    for at, end in ends.items():
        offsets.setdefault(at.topic, {})[at.partition] = end
    return offsets


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

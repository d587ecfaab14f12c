"""Kafka offsets: where the stream starts, and up to where its records may already be in the dump.

A record's key has its binlog file and offset. If record and dump are from the same server, comparing the two positions
shows whether the dump contains the record. After a failover, later records are from another server. So the sink waits
until the pipeline has passed the dump's position, and keeps Kafka's end offsets of that moment: records from these
offsets on are newer than the dump, whatever their position.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from databus_binlog import GtidSet, Position
from databus_core import kafka_client, names
from databus_core.errors import ChangesLost, DumpUnusable, InvalidSettings, KafkaUnavailable
from databus_core.events import full_name
from databus_core.kafka_progress import read_progress
from databus_core.kafka_topics import partitions_of
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger, position_fields
from databus_core.manifest import Manifest
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.settings.rules import DEFAULT_OUTPUT
from databus_spark.changelog import Offsets

log = get_logger(__name__)

_PAUSE_SECONDS = 0.5
#: pause while a transaction is open
_END_SECONDS = 0.01
#: how long a transaction may be open beyond `publisher.transaction_timeout`; Kafka aborts it 10 s after that timeout
_LATE_SECONDS = 60.0


def is_from_pipeline_host(manifest: Manifest, progress: Progress | None) -> bool:
    """Return whether the dump was taken from the server that the pipeline reads; True if either is unknown."""
    return progress is None or "" in (progress.server, manifest.server) or progress.server == manifest.server


class PipelineMoment(msgspec.Struct, frozen=True):
    """The moment when the pipeline had passed a dump's position."""

    #: ordinal of the last transaction that was published
    transaction: int
    #: the ends of the topics: all records from there on are newer than the dump
    offsets: Offsets


async def wait_until_passed(settings: Settings, manifest: Manifest) -> PipelineMoment:
    """Wait until the pipeline has passed the dump's position.

    Raises DumpUnusable if the pipeline has failed over to another server by then.
    """
    log.info(
        LogEvent.BOOTSTRAP_WAITING,
        "waiting until the pipeline has passed the dump's position",
        dump=manifest.id,
        **position_fields(manifest.position or Position()),
    )
    async for progress in _polled(settings):
        if _has_passed(progress, manifest):
            break
    async with (
        kafka_client.consumer(settings.kafka, "read_uncommitted") as written,
        kafka_client.consumer(settings.kafka) as committed,
    ):
        ends = by_topic(await stable_ends(settings, written, committed, await list_partitions(settings)))
    # With `exactly_once`, the progress of all records before these offsets is committed, so this raises if a failover
    # precedes them.
    _has_passed(later := await read_progress(settings, to_end=True) or progress, manifest)
    return PipelineMoment(later.transaction, ends)


async def _polled(settings: Settings) -> AsyncIterator[Progress]:
    while True:
        yield await read_progress(settings) or Progress()
        await asyncio.sleep(_PAUSE_SECONDS)


def _has_passed(progress: Progress, manifest: Manifest) -> bool:
    """Return whether the progress has passed the dump. Raises DumpUnusable if it is of another server."""
    if not is_from_pipeline_host(manifest, progress):
        raise DumpUnusable(f"the pipeline failed over to another server after dump {manifest.id}: request a new dump")
    if progress.position is None or manifest.position is None:
        return False
    dump, reached = manifest.position, progress.position
    if dump.gtid_set and reached.gtid_set:
        dumped = GtidSet.parse("mysql" if manifest.source.startswith("mysql") else "mariadb", dump.gtid_set)
        return type(dumped).from_text(reached.gtid_set).covers(dumped)
    return _place(reached) >= _place(dump)


def _place(position: Position) -> tuple[int, int]:
    return int(position.file.rpartition(".")[2]), position.offset


async def stable_ends(
    settings: Settings, written: AIOKafkaConsumer, committed: AIOKafkaConsumer, partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    """Read the partitions' ends, and wait until no transaction before them is open.

    The consumers read, and do not read, records of open transactions. Raises KafkaUnavailable if one stays open for
    longer than the publisher's may.
    """
    longest = settings.publisher.transaction_timeout + _LATE_SECONDS
    ends: dict[TopicPartition, int] = await written.end_offsets(partitions)
    limit = time.monotonic() + longest
    while True:
        stable = await committed.end_offsets(partitions)
        late = [each for each, end in ends.items() if stable[each] < end]
        if not late:
            return ends
        if time.monotonic() > limit:
            raise KafkaUnavailable(
                f"topic {late[0].topic}, partition {late[0].partition}: a transaction before offset {ends[late[0]]} is "
                f"open for more than {longest:g} s, longer than publisher.transaction_timeout permits, and hides what "
                "comes after it: look for its producer with kafka-transactions.sh find-hanging, and end it with abort"
            )
        await asyncio.sleep(_END_SECONDS)


def by_topic(offsets: dict[TopicPartition, int]) -> Offsets:
    """Group offsets of partitions by their topics."""
    found: Offsets = {}
    for partition, offset in offsets.items():
        found.setdefault(partition.topic, {})[partition.partition] = offset
    return found


def topic_pattern(settings: Settings) -> str:
    """Build the regular expression of the topics to subscribe to; it also matches topics of tables created later.

    Dead letters are changes that the topics of their tables lack. Raises InvalidSettings.
    """
    letters = re.escape(names.dead_letter_topic(settings.name))
    return f"{_pattern(settings, settings.spark.tables)}|{letters}"


def _pattern(settings: Settings, tables: list[str]) -> str:
    if settings.publisher.delivery != "exactly_once":
        raise InvalidSettings(
            "publisher.delivery: the sink needs exactly_once, because records that are sent again have no order"
        )
    rules = (rule for rule in settings.publisher.rules if rule.output == DEFAULT_OUTPUT and not rule.drop)
    templates = [(rule.topic, rule.escape_names) for rule in rules if rule.format == "databus"]
    if not templates:
        raise InvalidSettings(
            "publisher.routes: the sink reads format databus, and no rule of output default publishes it: add one"
        )
    return names.table_topics(templates, settings.name, tables)


def may_publish(settings: Settings, topic: str, table: tuple[str, str]) -> bool:
    """Return whether a topic that the sink reads may have records of a table."""
    return re.fullmatch(_pattern(settings, [full_name(*table)]), topic) is not None


def patterns_of(settings: Settings, topic: str) -> list[str]:
    """List the patterns of `spark.tables` whose tables a topic may have records of."""
    return [each for each in settings.spark.tables if re.fullmatch(_pattern(settings, [each]), topic)]


async def starting_offsets(settings: Settings, manifest: Manifest) -> Offsets:
    """Return where the change log begins: at the dump's offsets, and at the first record of other partitions.

    The offsets of a topic that does not exist any more are kept, so it is noticed that its records are missing.

    Raises ChangesLost or KafkaUnavailable.
    """
    earliest = await _earliest_offsets(settings)
    starts = {topic: dict(partitions) for topic, partitions in earliest.items()}
    starts[names.dead_letter_topic(settings.name)] = {0: manifest.dead_letter_offset}  # also if it does not exist yet
    for topic, offsets in manifest.kafka_offsets.items():
        for partition, offset in offsets.items():
            if topic in earliest and offset < earliest[topic].get(partition, offset + 1):
                raise ChangesLost(
                    f"topic {topic}, partition {partition}: Kafka has already deleted offset {offset}, where the "
                    f"changes after dump {manifest.id} start: raise the topic's retention and request a new dump"
                )
            starts.setdefault(topic, {})[partition] = offset
    return starts


async def list_partitions(settings: Settings) -> list[TopicPartition]:
    """List the partitions of the topics to subscribe to. Raises KafkaUnavailable."""
    pattern = re.compile(topic_pattern(settings))
    async with kafka_client.admin(settings.kafka) as admin:
        return await partitions_of(admin, lambda topic: pattern.fullmatch(topic) is not None)


async def _earliest_offsets(settings: Settings) -> Offsets:
    """Read the earliest offset of each partition of the topics to subscribe to."""
    partitions = await list_partitions(settings)
    async with kafka_client.consumer(settings.kafka) as consumer:
        return by_topic(await consumer.beginning_offsets(partitions))


async def check_kafka(settings: Settings) -> None:
    """Check the connection to Kafka. Raises KafkaUnavailable, and FatalError if Kafka refuses access."""
    await _earliest_offsets(settings)

"""What a topic has: its offsets, and the newest definition of a table."""

from dataclasses import dataclass

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from databus import kafka_client, names
from databus.errors import ChangesLost, InvalidSettings
from databus.kafka_topics import partitions_of
from databus.settings import Kafka
from databus_changes.tables import TableName
from databus_spark.changelog import Offsets
from databus_spark.definitions import decode_definition

#: records at the end of a partition among which a definition is searched first
_SEARCHED = 64


@dataclass(frozen=True)
class Range:
    """The records between two offsets of each partition of a topic."""

    starts: Offsets
    #: where records of transactions that are still open may follow
    ends: Offsets
    #: the definition of the table in its newest record before the ends, as in the message
    definition: str


class _Message(msgspec.Struct):
    Table: msgspec.Raw


async def read_range(
    kafka: Kafka, topic: str, table: TableName, start: Offsets | None, end: Offsets | None, *, check: bool
) -> Range:
    """Find the range from `start` to `end`, by default all committed records there are; other topics are ignored.

    Raises ChangesLost if, with `check`, Kafka does not have these offsets; InvalidSettings if the table has no record.
    """
    async with kafka_client.admin(kafka) as admin:
        partitions = await partitions_of(admin, lambda each: each == topic)
    if not partitions:
        raise InvalidSettings(f"Kafka has no topic {topic}: check the name, and whether the table has changed yet")
    async with kafka_client.consumer(kafka) as consumer:
        first: dict[TopicPartition, int] = await consumer.beginning_offsets(partitions)
        last: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
        starts, ends = _chosen(start, first), _chosen(end, last)
        for each in partitions:
            if check and not first[each] <= starts[each] <= ends[each] <= last[each]:
                raise ChangesLost(
                    f"topic {topic}, partition {each.partition} has the offsets from {first[each]} to {last[each]}, "
                    f"not all from {starts[each]} to {ends[each]}: begin with a new dump"
                )
        found = [await _newest(consumer, each, first[each], ends[each], table) for each in partitions]
    _, definition = max(found)
    if not definition:
        raise InvalidSettings(f"topic {topic} has no record of table {'.'.join(table)} before the end: check the names")
    return Range(_by_partition(topic, starts), _by_partition(topic, ends), definition)


def _chosen(offsets: Offsets | None, default: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    return {each: (offsets or {}).get(each.topic, {}).get(each.partition, default[each]) for each in default}


def _by_partition(topic: str, offsets: dict[TopicPartition, int]) -> Offsets:
    return {topic: {each.partition: offset for each, offset in offsets.items()}}


async def _newest(
    consumer: AIOKafkaConsumer, partition: TopicPartition, first: int, end: int, table: TableName
) -> tuple[str, str]:
    """Return sequence and definition of the table's newest record in a partition; empty texts if it has none."""
    consumer.assign([partition])
    newest, size = ("", ""), _SEARCHED
    while end > first and not newest[1]:  # backwards, in growing steps
        begin = max(first, end - size)
        async for record in kafka_client.records(consumer, partition, begin, end):
            newest = max(newest, _definition(record, table))
        end, size = begin, size * 8
    return newest


def _definition(record: ConsumerRecord[bytes, bytes], table: TableName) -> tuple[str, str]:
    sequence = dict(record.headers).get(names.SEQUENCE_HEADER, b"").decode()
    try:
        text = bytes(msgspec.json.decode(record.value or b"", type=_Message).Table)
        found = decode_definition(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", ""
    return (sequence, text.decode()) if sequence and (found.schema, found.name) == table else ("", "")

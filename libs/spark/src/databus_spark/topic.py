"""What a topic has: its offsets, and the definition of a table in its newest record."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from databus_changes.tables import TableName
from databus_core import kafka_client, names
from databus_core.definitions import decode_definition
from databus_core.errors import ChangesLost, InvalidSettings
from databus_core.kafka_ends import Offsets
from databus_core.kafka_topics import partitions_of
from databus_core.settings import Kafka

_T = TypeVar("_T")
_Record: TypeAlias = "ConsumerRecord[bytes, bytes]"
#: returns what a record says of the table, with a text that orders the records of all partitions; None if nothing
Find: TypeAlias = Callable[[_Record], tuple[str, _T] | None]

#: records at the end of a partition that are searched first
_SEARCHED = 64


@dataclass(frozen=True)
class Range(Generic[_T]):
    """The records between two offsets of each partition of a topic."""

    starts: Offsets
    #: where records of transactions that are still open may follow
    ends: Offsets
    #: what was found in the newest record before the ends
    newest: _T


class _Message(msgspec.Struct):
    Table: msgspec.Raw


async def read_range(
    kafka: Kafka, topic: str, find: Find[_T], what: str, start: Offsets | None, end: Offsets | None, *, check: bool
) -> Range[_T]:
    """Find the range from `start` to `end`, by default all committed records there are; other topics are ignored.

    `find` is called with records from the end on, `what` names those in which it finds something. Raises ChangesLost
    if, with `check`, Kafka does not have these offsets; InvalidSettings if nothing is found.
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
                    f"not all from {starts[each]} to {ends[each]}: begin with a new dump or snapshot"
                )
        found = [await _newest(consumer, each, first[each], ends[each], find) for each in partitions]
    newest = max((each for each in found if each), key=lambda each: each[0], default=None)
    if newest is None:
        raise InvalidSettings(f"topic {topic} has no {what} before the end: check the names")
    return Range(_by_partition(topic, starts), _by_partition(topic, ends), newest[1])


def _chosen(offsets: Offsets | None, default: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    return {each: (offsets or {}).get(each.topic, {}).get(each.partition, default[each]) for each in default}


def _by_partition(topic: str, offsets: dict[TopicPartition, int]) -> Offsets:
    return {topic: {each.partition: offset for each, offset in offsets.items()}}


async def _newest(
    consumer: AIOKafkaConsumer, partition: TopicPartition, first: int, end: int, find: Find[_T]
) -> tuple[str, _T] | None:
    """Return what is found in the newest record of a partition."""
    consumer.assign([partition])
    newest, size = None, _SEARCHED
    while end > first and newest is None:  # backwards, in growing steps
        begin = max(first, end - size)
        async for record in kafka_client.records(consumer, {partition: (begin, end)}):
            found = find(record)
            if found and (newest is None or found[0] >= newest[0]):
                newest = found
        end, size = begin, size * 8
    return newest


def find_definition(record: _Record, table: TableName) -> tuple[str, str] | None:
    """Return sequence and definition of the table in a record of the `databus` format, as in the message."""
    sequence = dict(record.headers).get(names.SEQUENCE_HEADER, b"").decode()
    try:
        text = bytes(msgspec.json.decode(record.value or b"", type=_Message).Table)
        found = decode_definition(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return (sequence, text.decode()) if sequence and (found.schema, found.name) == table else None

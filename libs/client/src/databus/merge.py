"""Reads several partitions at the same time, and yields their records in the pipeline's order.

In a partition, records are in this order already, except dead letters that were replayed: they come when they are met.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import Any, TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from databus_core.errors import ChangesLost, KafkaUnavailable
from databus_core.names import SEQUENCE_HEADER

Record: TypeAlias = "ConsumerRecord[Any, Any]"

#: how long a fetch of several partitions waits before the ends are looked at again, in ms
_WAIT_MS = 200
#: how long records that Kafka has may not come
_READ_SECONDS = 60.0
_BEGIN_AGAIN = "begin again with a snapshot"
#: sorts after every sequence
_AFTER_ALL = "~"
#: how formats mark a delete
_DELETES = (b'"Action":"delete"', b'"op":"d"', b'"type":"delete"', b'"type":"DELETE"')


def sequence_of(record: Record) -> str:
    """Return the sequence of a record; empty if it has none."""
    for name, value in record.headers:
        if name == SEQUENCE_HEADER:
            return str(value, "ascii")
    return ""


def _rank(partition: "_Partition", lowest: str) -> tuple[str, bool]:
    """Order partitions by their next records. An update that moves a row is a delete, and then an insert elsewhere."""
    sequence, record = partition.records[0]
    return sequence, sequence == lowest and not any(mark in (record.value or b"") for mark in _DELETES)


class _Partition:
    """A partition that is read."""

    def __init__(self, offset: int) -> None:
        #: offset of the next record that is fetched
        self.next = offset
        self.end = offset
        self.records: deque[tuple[str, Record]] = deque()


class Merge:
    """Reads partitions up to their ends, in rounds. The consumer reads committed records only."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self._partitions: dict[TopicPartition, _Partition] = {}

    def add(self, starts: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, too, from these offsets on."""
        self._partitions |= {each: _Partition(offset) for each, offset in starts.items()}
        self._consumer.assign(list(self._partitions))
        for each, partition in self._partitions.items():
            self._consumer.seek(each, partition.next)

    def remove(self, partitions: set[TopicPartition]) -> set[str]:
        """Read these partitions no more, because they do not exist any more; return their topics.

        Raises ChangesLost if it is known that they had records that were not read.
        """
        for each in partitions:
            partition = self._partitions.pop(each)
            if partition.records or partition.next < partition.end:
                raise ChangesLost(f"topic {each.topic} was deleted with records that were not read: {_BEGIN_AGAIN}")
        if partitions:
            self.add({})
        return {each.topic for each in partitions}

    @property
    def partitions(self) -> set[TopicPartition]:
        """The partitions that are read."""
        return set(self._partitions)

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """The offset of the next record of each partition."""
        return {
            each: partition.records[0][1].offset if partition.records else partition.next
            for each, partition in self._partitions.items()
        }

    async def read(self, ends: Mapping[TopicPartition, int], last: str) -> AsyncGenerator[tuple[str, Record]]:
        """Yield the records before these offsets whose sequence is not above `last`, each with its sequence.

        Raises ChangesLost if Kafka has deleted records that were not read.
        """
        for each, end in ends.items():
            if end < self._partitions[each].next:
                raise ChangesLost(f"topic {each.topic} was deleted and created again: {_BEGIN_AGAIN}")
            self._partitions[each].end = end
        while heads := await self._heads(last):
            lowest = min(partition.records[0][0] for partition in heads)
            first, *others = sorted(heads, key=lambda partition: _rank(partition, lowest))
            # What this partition has before the next record of another one needs no further comparison.
            limit = others[0].records[0][0] if others else _AFTER_ALL
            while True:
                yield first.records.popleft()
                if not first.records:
                    break
                sequence, record = first.records[0]
                if sequence >= limit or sequence > last or record.offset >= first.end:
                    break

    async def _heads(self, last: str) -> list[_Partition]:
        """Return the partitions that have a next record; fetch those that are not known."""
        try:
            async with asyncio.timeout(None) as limit:
                while missing := self._missing():
                    before = sum(partition.next for partition in missing.values())
                    if limit.when() is None:
                        limit.reschedule(asyncio.get_running_loop().time() + _READ_SECONDS)
                    await self._fetch(missing)
                    if sum(partition.next for partition in missing.values()) > before:
                        limit.reschedule(None)
        except TimeoutError as error:
            raise KafkaUnavailable(
                f"Kafka has sent no records for {_READ_SECONDS:g} s, although it has some"
            ) from error
        return [
            partition
            for partition in self._partitions.values()
            if partition.records and partition.records[0][0] <= last and partition.records[0][1].offset < partition.end
        ]

    def _missing(self) -> dict[TopicPartition, _Partition]:
        """Return the partitions whose next record is not known."""
        return {
            each: partition
            for each, partition in self._partitions.items()
            if not partition.records and partition.next < partition.end
        }

    async def _fetch(self, missing: Mapping[TopicPartition, _Partition]) -> None:
        # A partition that needs nothing would let the fetch of the others wait.
        done = [each for each in self._partitions if each not in missing]
        self._consumer.pause(*done)
        try:
            found = await self._consumer.getmany(*missing, timeout_ms=_WAIT_MS)
        except OffsetOutOfRangeError as error:
            (partition, *_) = error.args[0]
            raise ChangesLost(
                f"topic {partition.topic}, partition {partition.partition}: Kafka has deleted records that were not "
                f"read: {_BEGIN_AGAIN}"
            ) from error
        finally:
            self._consumer.resume(*done)
        for each, records in found.items():
            self._partitions[each].records.extend((sequence_of(record), record) for record in records)
        for each, partition in missing.items():
            partition.next = await self._consumer.position(each)  # also behind markers and aborted records

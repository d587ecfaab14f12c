"""A consumer of partitions in memory."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from aiokafka import TopicPartition

from databus_core import names
from databus_wire.kafka_records import sequence_text

#: the transactions of a partition's records; None: an offset without a record, as that of a transaction's marker
Records = Sequence[int | None]


class FakeConsumer:
    """Reads records from memory, a few at once; retention has deleted those before the `earliest` offsets."""

    def __init__(self, partitions: dict[TopicPartition, Records], earliest: dict[TopicPartition, int]) -> None:
        self._partitions = partitions
        self._earliest = earliest
        self._offsets: dict[TopicPartition, int] = {}
        #: number of reads
        self.reads = 0

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self._earliest.get(each, 0) for each in partitions}

    def assign(self, partitions: list[TopicPartition]) -> None:
        self._offsets = dict.fromkeys(partitions, 0)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        assert partition in self._offsets
        assert offset >= self._earliest.get(partition, 0)
        self._offsets[partition] = offset

    async def position(self, partition: TopicPartition) -> int:
        return self._offsets[partition]

    async def getmany(self, *partitions: TopicPartition, **_: Any) -> dict[TopicPartition, list[Any]]:
        self.reads += 1
        found = {each: self._read(each) for each in partitions or self._offsets}
        return {each: records for each, records in found.items() if records}

    def _read(self, partition: TopicPartition) -> list[Any]:
        begin, self._offsets[partition] = self._offsets[partition], self._offsets[partition] + 50
        return [
            SimpleNamespace(
                topic=partition.topic,
                partition=partition.partition,
                offset=offset,
                headers=[(names.SEQUENCE_HEADER, sequence_text(transaction, 0))],
            )
            for offset, transaction in enumerate(self._partitions[partition][begin : begin + 50], begin)
            if transaction is not None
        ]

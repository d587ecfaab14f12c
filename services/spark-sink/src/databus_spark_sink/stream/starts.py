"""Where a micro-batch begins: at the offsets that the change log has, if Kafka still has the records from there on.

A topic that was deleted and created again has other records at the same offsets. It is recognised by a record before
the change log's offset whose transaction is newer than those of the change log.
"""

import math
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from aiokafka import AIOKafkaConsumer, TopicPartition

from databus_spark.changelog import LogState
from databus_spark_sink.stream.transactions import highest_transactions, transactions

#: records of a topic that are read, at most, to find the first one that is newer than the change log
MAX_SKIPPED = 100_000
#: offsets before the change log's that are read first
_SEARCHED = 64


@dataclass(frozen=True)
class Loss:
    """Why records of a topic are missing."""

    reason: str
    #: whether the topic was deleted, as it may be after the table was dropped
    was_deleted: bool = False
    #: ordinal of the last transaction of which records are missing; None: it is not known
    last: int | None = None


@dataclass(frozen=True)
class Starts:
    """Where the partitions are read from."""

    offsets: dict[TopicPartition, int]
    #: topic → why records before the offsets are missing
    lost: dict[str, Loss]
    #: topics that the change log has read from, and that do not exist any more
    gone: list[str]


class StartFinder:
    """Finds the beginnings of batches."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        #: reads committed records only
        self._consumer = consumer
        #: partitions of which it is known whose offsets the change log has
        self._checked: set[TopicPartition] = set()

    async def find(self, state: LogState, ends: dict[TopicPartition, int], pattern: str) -> Starts:
        """Return where the partitions with these ends are read from; `pattern` matches the topics that are read."""
        earliest: dict[TopicPartition, int] = await self._consumer.beginning_offsets(list(ends))
        known = {each: state.offsets.get(each.topic, {}).get(each.partition, 0) for each in ends}
        created_again = await self._created_again(state, earliest, known, ends)
        starts, lost = dict(earliest), dict[str, Loss]()
        for each, first in earliest.items():
            if state.transaction >= 0 and each.topic not in state.offsets:
                starts[each], loss = await self._first_newer(state.transaction, each, first, ends[each])
                if loss:
                    lost[each.topic] = _later(loss, lost.get(each.topic, loss))
                continue
            expected = 0 if each.topic in created_again else known[each]
            starts[each] = max(first, expected)
            if first > expected:
                reason = f"Kafka has deleted records of topic {each.topic} that were not read"
                lost[each.topic] = Loss(reason)
        for topic in created_again - set(state.gone):  # one that was gone is new, and is read from its first record on
            lost[topic] = Loss(f"topic {topic} was deleted and created again", was_deleted=True)
        gone = _read_before(state, pattern) - {each.topic for each in ends}
        for topic in gone - set(state.gone):
            lost[topic] = Loss(f"topic {topic} was deleted, maybe with records that were not read", was_deleted=True)
        return Starts(starts, lost, sorted(gone))

    async def _first_newer(
        self, after: int, partition: TopicPartition, begin: int, end: int
    ) -> tuple[int, Loss | None]:
        """Return where a partition is read from whose topic the change log does not know, and what it leaves out.

        For instance, a table was added to `spark.tables`: the dump that is loaded then has what older records have.
        """
        topic = partition.topic
        before = Loss(f"topic {topic} had records before the lake read it")
        start, skipped = begin, -1
        async with aclosing(transactions(self._consumer, partition, begin, end)) as read:
            async for transaction, offset in read:
                if transaction > after:
                    break
                if end - begin > MAX_SKIPPED:
                    return end, before
                start, skipped = offset + 1, max(skipped, transaction)
        if skipped >= 0:
            return start, replace(before, last=skipped)
        deleted = Loss(f"Kafka may have deleted records of topic {topic} that were not read")
        return start, deleted if begin else None

    async def _created_again(
        self,
        state: LogState,
        earliest: Mapping[TopicPartition, int],
        known: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> set[str]:
        """Return the topics that are not those that the change log has read up to the known offsets.

        It is read once in a partition without new records. Before the log's first transaction there is nothing to
        compare.
        """
        found = {each for each, end in ends.items() if known[each] > end}
        if state.transaction >= 0:
            unsure = [each for each in ends.keys() - found if known[each] < ends[each] or each not in self._checked]
            newest = await self._newest({each: (earliest[each], known[each]) for each in unsure})
            found |= {each for each, transaction in newest.items() if transaction > state.transaction}
            self._checked = set(ends)
        return {each.topic for each in found}

    async def _newest(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int]:
        """Return the highest transaction of the last records in these ranges.

        Of several records, because one may be an old dead letter that was replayed into a new topic.
        """
        found: dict[TopicPartition, int] = {}
        size = _SEARCHED
        while ranges := {each: (first, end) for each, (first, end) in ranges.items() if first < end}:
            read = {each: (max(first, end - size), end) for each, (first, end) in ranges.items()}
            found |= await highest_transactions(self._consumer, read)
            # There may be only markers of transactions, or what compaction has left: further back.
            ranges = {each: (first, read[each][0]) for each, (first, _) in ranges.items() if each not in found}
            size *= 8
        return found


def _later(one: Loss, other: Loss) -> Loss:
    """Return the loss that lasts longer, of two of one topic."""
    return max(one, other, key=lambda loss: math.inf if loss.last is None else loss.last)


def _read_before(state: LogState, pattern: str) -> set[str]:
    """Return the topics that records were read from; those that do not belong to the lake any more do not matter."""
    return {topic for topic, offsets in state.offsets.items() if any(offsets.values()) and re.fullmatch(pattern, topic)}

"""Where a micro-batch ends: in each partition before the first record of a later transaction of the pipeline.

So a batch has whole transactions, whatever the topics and partitions that their rows are in. Records are in the order
of the transactions in each partition, except foreign ones and replayed dead letters.
"""

import re
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from databus import kafka_client, names
from databus.errors import FatalError
from databus.kafka_progress import read_progress
from databus.settings import Settings
from databus_spark.changelog import LogState, Offsets
from databus_spark.sequences import transaction_of
from databus_spark_sink.offsets import by_topic, list_partitions, stable_ends

#: records of a partition in one batch, at most; more if a transaction has more
MAX_RECORDS = 100_000
_NO_LIMIT = 2**62
#: records that are read one after the other, instead of searching among them
_SCANNED = 64
_SEQUENCE = re.compile(rb"\d{16}-\d{10}")


@dataclass(frozen=True)
class Batch:
    """The records of some transactions."""

    #: the offsets of the first records
    starts: Offsets
    #: the last transaction, and the offsets after the last records
    end: LogState
    #: topic → why records before the batch are missing
    lost: dict[str, str]
    #: number of offsets after the starts in Kafka, of this batch and of later ones
    waiting: int
    #: whether it has all that was published when it was searched for
    is_all: bool

    @property
    def records(self) -> int:
        """Number of offsets in the batch."""
        return sum(
            self.end.offsets[topic][p] - start for topic, each in self.starts.items() for p, start in each.items()
        )


class Cuts:
    """Finds the ends of batches."""

    def __init__(self, settings: Settings, written: AIOKafkaConsumer, committed: AIOKafkaConsumer) -> None:
        self._settings = settings
        #: consumers that read, and do not read, records of open transactions
        self._written = written
        self._committed = committed

    async def next(self, state: LogState) -> Batch | None:
        """Return the batch after `state`; None if there is no new transaction."""
        progress = await read_progress(self._settings)
        if progress is None or progress.transaction == state.transaction:
            return None
        if progress.transaction < state.transaction:
            raise FatalError(
                "the pipeline has begun anew, and its order does not continue that of the lake: stop the sink, "
                "remove the lake, and start the sink again"
            )
        partitions = await list_partitions(self._settings)
        ends = await stable_ends(self._written, self._committed, partitions)
        starts, lost = await self._starts(state, ends)
        waiting = sum(ends[each] - start for each, start in starts.items())
        last = progress.transaction
        # Kafka may show a transaction's records before its progress: `to_end` waits for the progress, too.
        later = await read_progress(self._settings, to_end=True)
        is_small = all(ends[each] - start <= MAX_RECORDS for each, start in starts.items())
        if later != progress or not is_small:  # else no transaction was committed while the ends were read
            ends, last = await self._cut(starts, ends, state.transaction, last)
        return Batch(
            by_topic(starts),
            LogState(last, _merged(state.offsets, by_topic(ends))),
            lost,
            waiting,
            last == progress.transaction,
        )

    async def _cut(
        self, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int], after: int, last: int
    ) -> tuple[dict[TopicPartition, int], int]:
        """Return the ends of a batch of limited size, and its last transaction, which is at most `last`."""
        for partition, start in starts.items():
            if ends[partition] - start > MAX_RECORDS:
                last = min(last, await self._last_before(partition, start, ends[partition], after))
        cut = {each: await self._first_after(each, start, ends[each], after, last) for each, start in starts.items()}
        return cut, last

    async def _starts(
        self, state: LogState, ends: dict[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], dict[str, str]]:
        """Return where the partitions are read from, and why records of a topic are missing."""
        starts: dict[TopicPartition, int] = await self._committed.beginning_offsets(list(ends))
        lost: dict[str, str] = {}
        for partition, earliest in starts.items():
            known = state.offsets.get(partition.topic, {}).get(partition.partition, 0)
            if earliest <= known <= ends[partition]:
                starts[partition] = known
            elif known < earliest:
                lost[partition.topic] = f"Kafka has deleted records of topic {partition.topic} that were not read"
            else:
                lost[partition.topic] = f"topic {partition.topic} was created anew"
        return starts, lost

    async def _last_before(self, partition: TopicPartition, start: int, end: int, after: int) -> int:
        """Return the last transaction that is complete within the largest size of a batch; more if it has none."""
        size = MAX_RECORDS
        while start + size < end and (found := await self._first_record(partition, start + size, end, after)):
            if found[0] - 1 > after:
                return found[0] - 1
            size *= 2  # all records until there are of one transaction
        return _NO_LIMIT

    async def _first_after(self, partition: TopicPartition, start: int, end: int, after: int, last: int) -> int:
        """Return the offset of the first record of a transaction after `last`; the end if there is none."""
        low, high, size = start, end, _SCANNED // 8
        while low == start and high > start:  # the record is probably near the end
            begin = max(start, end - size)
            found = await self._first_record(partition, begin, end, after)
            if found and found[0] <= last:
                low = begin
                break
            if begin == start:
                return found[1] if found else end
            high, size = begin, size * 8
        while high - low > _SCANNED:  # the first record from `low` on is not after `last`, that from `high` on is
            middle = (low + high) // 2
            found = await self._first_record(partition, middle, end, after)
            low, high = (middle, high) if found and found[0] <= last else (low, middle)
        found = await self._first_record(partition, low, end, last)
        return found[1] if found else end

    async def _first_record(
        self, partition: TopicPartition, begin: int, end: int, after: int
    ) -> tuple[int, int] | None:
        """Return transaction and offset of the first record from an offset on that is later than `after`."""
        self._committed.assign([partition])
        async for record in kafka_client.records(self._committed, partition, begin, end):
            if (transaction := _transaction(record)) is not None and transaction > after:
                return transaction, record.offset
        return None


def _merged(offsets: Offsets, ends: Offsets) -> Offsets:
    """Keep the offsets of topics that are not listed now: one that comes back may have lost records."""
    return {topic: offsets.get(topic, {}) | ends.get(topic, {}) for topic in (*offsets, *ends)}


def _transaction(record: "ConsumerRecord[object, object]") -> int | None:
    text = next((value for key, value in record.headers if key == names.SEQUENCE_HEADER), b"")
    return transaction_of(text.decode()) if _SEQUENCE.fullmatch(text) else None

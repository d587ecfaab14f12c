"""Where a micro-batch ends: in each partition before the first record of a transaction that is not in the batch.

So a batch has whole transactions, whatever the topics and partitions that their rows are in. Records are in the order
of the transactions in each partition, except foreign ones and dead letters, which are replayed after later records.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition

from databus_core.change_topics import ChangeTopics
from databus_core.errors import FatalError, RulesDiffer
from databus_core.kafka_ends import Offsets, by_topic, stable_ends
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress, Reset
from databus_core.routes import fingerprint
from databus_core.settings import Settings
from databus_spark.changelog import LogState
from databus_spark_sink.stream.starts import Loss, StartFinder
from databus_spark_sink.stream.transactions import transactions

#: records of a partition in one batch, at most; more if a transaction has more
MAX_RECORDS = 100_000


@dataclass(frozen=True)
class Batch:
    """The records of some transactions."""

    #: the offsets of the first records
    starts: Offsets
    #: the last transaction, and the offsets after the last records
    end: LogState
    #: topic → why records before the batch are missing
    lost: dict[str, Loss]
    #: the last transaction that was published when the batch was searched for; no missing record is of a later one
    published: int
    #: number of offsets after the starts in Kafka, of this batch and of later ones
    waiting: int
    #: whether it has all that was published when it was searched for
    is_all: bool
    #: a reset of the pipeline that is one of the transactions
    reset: Reset | None = None

    @property
    def records(self) -> int:
        """Number of offsets in the batch."""
        return sum(
            self.end.offsets[topic][p] - start for topic, each in self.starts.items() for p, start in each.items()
        )


class Cuts:
    """Finds the ends of batches."""

    def __init__(
        self, settings: Settings, written: AIOKafkaConsumer, committed: AIOKafkaConsumer, rules_after: int = 0
    ) -> None:
        """`rules_after` is the last transaction published by earlier rules, as far as the lake knows."""
        self._settings = settings
        self._topics = ChangeTopics(settings, settings.spark.tables)
        self._rules_after = rules_after
        #: consumers that read, and do not read, records of open transactions
        self._written = written
        self._committed = committed
        self._starts = StartFinder(committed)

    async def next(self, state: LogState) -> Batch | None:
        """Return the batch after `state`; None if there is no new transaction.

        Raises RulesDiffer if the publisher has, or had meanwhile, other rules.
        """
        progress = await read_progress(self._settings)
        if progress is None:
            return None
        require_same_rules(self._settings, progress)
        if progress.routes and progress.routes.after > self._rules_after:
            raise RulesDiffer("the publisher has published by other rules meanwhile")
        if progress.transaction == state.transaction:
            return None
        if progress.transaction < state.transaction:
            raise FatalError(
                f"the pipeline has published up to transaction {progress.transaction}, but the lake already has "
                f"transaction {state.transaction}: check name and kafka.bootstrap_servers; if an older copy of Kafka's "
                "topics was restored, run databus pipeline reset --to snapshot"
            )
        partitions = await self._topics.partitions()
        timeout = self._settings.publisher.transaction_timeout
        ends = await stable_ends(timeout, self._written, self._committed, partitions)
        found = await self._starts.find(state, ends, self._topics.pattern)
        starts = found.offsets
        waiting = sum(ends[each] - start for each, start in starts.items())
        last, reset = progress.transaction, progress.reset
        if reset and state.transaction < reset.transaction - 1 < last:
            last = reset.transaction - 1  # a reset parks all known tables: also those that the records before it create
        # Kafka may show a transaction's records before its progress: `to_end` waits for the progress, too.
        later = await read_progress(self._settings, to_end=True)
        is_small = all(ends[each] - start <= MAX_RECORDS for each, start in starts.items())
        if last != progress.transaction or later != progress or not is_small:  # else the ends are those of `last`
            ends, last = await self._cut(starts, ends, state.transaction, last)
        return Batch(
            by_topic(starts),
            LogState(last, _merged(state.offsets, by_topic(ends), self._topics.pattern), gone=found.gone),
            found.lost,
            later.transaction if later else last,
            waiting,
            last == progress.transaction,
            reset if reset and state.transaction < reset.transaction <= last else None,
        )

    async def _cut(
        self, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int], after: int, last: int
    ) -> tuple[dict[TopicPartition, int], int]:
        """Return the ends of a batch of limited size, and its last transaction, which is at most `last`."""
        maxima = {each: _RunningMaximum(after) for each in starts}
        for each, maximum in maxima.items():
            async with aclosing(transactions(self._committed, each, starts[each], ends[each])) as read:
                last = await maximum.follow(read, starts[each] + MAX_RECORDS, last)
        return {each: maximum.first_after(last, ends[each]) for each, maximum in maxima.items()}, last


def require_same_rules(settings: Settings, progress: Progress) -> None:
    """Raise RulesDiffer if the publisher has other rules than the sink."""
    if progress.routes and progress.routes.fingerprint != fingerprint(settings.publisher.rules):
        raise RulesDiffer(
            "the publisher publishes by other rules (publisher.routes, topic, escape_names) than those of this sink: "
            "restart the one that has the old settings"
        )


class _RunningMaximum:
    """The records of a partition whose transaction is higher than those of all records before.

    A replayed dead letter is never one of them. Because of such letters a partition is not sorted and cannot be
    bisected, but must be read: about 12 µs of CPU a record.
    """

    def __init__(self, after: int) -> None:
        self._after = after
        self._transactions, self._offsets = array("q"), array("q")

    async def follow(self, records: AsyncIterator[tuple[int, int]], limit: int, last: int) -> int:
        """Read up to the first record after `last`; return an earlier one if a transaction begins at the limit."""
        highest = self._after
        async for transaction, offset in records:
            if transaction <= highest:
                continue
            if offset >= limit and self._transactions:
                last = min(last, highest)
            self._transactions.append(transaction)
            self._offsets.append(offset)
            highest = transaction
            if transaction > last:
                break
        return last

    def first_after(self, last: int, end: int) -> int:
        """Return the offset of the first record of a transaction after `last`; the end if there is none."""
        index = bisect_right(self._transactions, last)
        return self._offsets[index] if index < len(self._offsets) else end


def _merged(offsets: Offsets, ends: Offsets, pattern: str) -> Offsets:
    """Keep the offsets of topics that are not listed now: one that comes back may have lost records.

    Topics that do not match the pattern do not belong to the lake any more.
    """
    offsets = {topic: each for topic, each in offsets.items() if re.fullmatch(pattern, topic)}
    return {topic: offsets.get(topic, {}) | ends.get(topic, {}) for topic in (*offsets, *ends)}

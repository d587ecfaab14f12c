"""The records that a pipeline publishes from a bookmark on, in the pipeline's order, transaction by transaction.

The pipeline's progress is a record of the same Kafka transaction as the changes. So when the progress shows a
transaction, all changes up to it are before the ends of their topics: they can be merged, and none is missing.
"""

from collections.abc import AsyncGenerator, Collection
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from databus.bookmark import Bookmark
from databus.known_partitions import KnownPartitions
from databus.merge import Merge, Record
from databus_core import kafka_client, names
from databus_core.change_topics import ChangeTopics
from databus_core.errors import ChangesLost, DatabusError, FatalError, KafkaUnavailable, RulesDiffer
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress, decode_progress
from databus_core.routes import fingerprint
from databus_core.settings import Settings

#: how long a wait for progress takes before the state of the connection is looked at again, in ms
_POLL_MS = 1000
#: sorts after all rows of a transaction
_LAST_ROW = "-9999999999"


class RoundEnd(msgspec.Struct, frozen=True):
    """All transactions that were published are complete: the next record begins another one."""

    #: offset of the next record of each partition
    offsets: dict[TopicPartition, int]
    #: topics that were deleted after everything in them was read → ordinal of the last transaction that was read
    gone: dict[str, int]


class ChangeStream:
    """Reads in rounds: as soon as the pipeline has published more transactions, their records."""

    def __init__(self, settings: Settings, topics: ChangeTopics, bookmark: Bookmark) -> None:
        self._settings = settings
        self._topics = topics
        self._bookmark = bookmark
        #: topics that were gone → ordinal of the last transaction that was read before
        self._gone = dict(bookmark.gone)
        self._done, self._unbroken_after = bookmark.transaction, bookmark.unbroken_after
        self._is_first = True

    async def records(self) -> AsyncGenerator[tuple[str, Record] | RoundEnd]:
        """Yield the records, each with its sequence, for ever; after those of a round, its end.

        Raises KafkaUnavailable, RulesDiffer if the publisher publishes by other rules, and ChangesLost if changes are
        missing in Kafka.
        """
        kafka = self._settings.kafka
        async with AsyncExitStack() as stack:
            connect = stack.enter_async_context
            written = await connect(kafka_client.consumer(kafka, "read_uncommitted"))
            merge = Merge(reading := await connect(kafka_client.consumer(kafka, strict=True)))
            progress, followed = None, _Followed(self._settings, await connect(kafka_client.consumer(kafka)))
            known = KnownPartitions(self._topics, self._settings.publisher.transaction_timeout)
            while True:
                progress = await followed.after(progress)
                last, stop = self._checked(progress)
                ends = await known.ends(progress, written, reading)
                gone = await self._follow_partitions(merge, reading, ends)
                async for sequence, record in merge.read(ends, f"{last:016d}{_LAST_ROW}"):
                    if not self._came_before(sequence, record):
                        yield sequence, record
                yield RoundEnd(merge.offsets, gone)
                self._done = last
                if stop:
                    raise stop

    def _checked(self, progress: Progress) -> tuple[int, DatabusError | None]:
        """Return the ordinal of the last transaction that can be read now, and the error that follows it.

        Raises RulesDiffer, ChangesLost, and FatalError if the progress is that of another pipeline.
        """
        routes, reset = progress.routes, progress.reset
        if progress.transaction < self._done:
            raise FatalError(
                f"the pipeline has published up to transaction {progress.transaction}, but this program already has "
                f"transaction {self._done}: check the name and Kafka's address, or begin again with a snapshot"
            )
        known = max(self._done, self._unbroken_after)
        if reset and not reset.snapshot and known < reset.transaction:
            text = "the pipeline was reset to another position, and changes may be missing: begin again with a snapshot"
            return reset.transaction - 1, ChangesLost(text)
        mine = fingerprint(self._settings.publisher.rules)
        if routes and routes.fingerprint != mine:
            changed = RulesDiffer("publisher.routes is not what it was when this program started: start it again")
            if routes.before != mine or self._done >= routes.after:
                raise changed
            return routes.after, changed
        if routes and known < routes.after:
            raise ChangesLost(
                f"publisher.routes was changed after transaction {routes.after}, and this program has read only up to "
                f"transaction {self._done} by the rules before: begin again with a snapshot"
            )
        return progress.transaction, None

    async def _follow_partitions(
        self, merge: Merge, reading: AIOKafkaConsumer, ends: dict[TopicPartition, int]
    ) -> dict[str, int]:
        """Begin to read partitions that are new, and stop to read those of topics that are gone, which it returns."""
        gone = dict.fromkeys(merge.remove(merge.partitions - ends.keys()), self._done)
        self._gone |= gone
        new = [each for each in ends if each not in merge.partitions]
        starts = {}
        for each, first in (await reading.beginning_offsets(new)).items() if new else ():
            offset = first if each.topic in self._gone else self._known(each)
            if not first <= offset <= ends[each]:
                raise ChangesLost(
                    f"topic {each.topic}, partition {each.partition}: Kafka has the offsets {first} to {ends[each]}, "
                    f"and this program needs {offset}: its records were deleted, or the topic was created again; "
                    "begin again with a snapshot"
                )
            starts[each] = offset
        if self._is_first:
            self._is_first = False
            self._require_all(starts)
        if starts:
            merge.add(starts)
        return gone

    def _came_before(self, sequence: str, record: Record) -> bool:
        """Return whether a record was read already: its topic was missing for a while, or was created again."""
        return bool(self._gone) and int(sequence[:16] or 0) <= self._gone.get(record.topic, -1)

    def _known(self, partition: TopicPartition) -> int:
        """Return where a partition is read from; one that the bookmark does not have is new, and read completely."""
        return self._bookmark.offsets.get(partition.topic, {}).get(partition.partition, 0)

    def _require_all(self, found: Collection[TopicPartition]) -> None:
        """Raise ChangesLost if a topic of the bookmark was deleted before this start, maybe with unread records."""
        for topic, partitions in self._bookmark.offsets.items():
            for partition, offset in partitions.items():
                if offset and TopicPartition(topic, partition) not in found:
                    raise ChangesLost(
                        f"topic {topic}, partition {partition} was deleted, maybe with records that were not read: "
                        "begin again with a snapshot"
                    )


class _Followed:
    """Waits for the progress of a pipeline."""

    def __init__(self, settings: Settings, consumer: AIOKafkaConsumer) -> None:
        self._settings = settings
        self._consumer = consumer
        self._partition = TopicPartition(names.progress_topic(settings.name), 0)

    async def after(self, known: Progress | None) -> Progress:
        """Return the newest progress, or the next one that has more transactions than `known`.

        Raises KafkaUnavailable as long as the pipeline has not begun.
        """
        if known is None:
            return await self._first()
        progress = known
        while progress.transaction <= known.transaction:  # the first records may be older than `known`
            found: dict[Any, list[Record]] = await self._consumer.getmany(self._partition, timeout_ms=_POLL_MS)
            for records in found.values():
                progress = decode_progress(records[-1].value)
            if not found:  # `getmany` waits for ever, without an error, for a broker that is away
                await self._consumer.end_offsets([self._partition])
        return progress

    async def _first(self) -> Progress:
        # It is read twice: a topic that does not exist yet must not be assigned, because that would create it.
        if await read_progress(self._settings):
            self._consumer.assign([self._partition])
            await self._consumer.seek_to_end(self._partition)
            if progress := await read_progress(self._settings):
                return progress
        raise KafkaUnavailable(f"pipeline {self._settings.name} has published nothing yet: start its services")

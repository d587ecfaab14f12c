"""The records that a pipeline publishes from a bookmark on, in the pipeline's order, transaction by transaction.

The pipeline's progress is a record of the same Kafka transaction as the changes. So when the progress shows a
transaction, all changes up to it are before the ends of their topics: they can be merged, and none is missing.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from databus.bookmark import Bookmark
from databus.merge import Merge, Record
from databus_core import kafka_client, names
from databus_core.change_topics import ChangeTopics
from databus_core.errors import ChangesLost, FatalError, KafkaUnavailable, RulesDiffer
from databus_core.kafka_ends import stable_ends
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


class ChangeStream:
    """Reads in rounds: as soon as the pipeline has published more transactions, their records."""

    def __init__(self, settings: Settings, topics: ChangeTopics, bookmark: Bookmark) -> None:
        self._settings = settings
        self._topics = topics
        self._bookmark = bookmark
        self._done = bookmark.transaction

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
            while True:
                progress = await followed.after(progress)
                last = self._checked(progress)
                partitions = await self._topics.partitions()
                timeout = self._settings.publisher.transaction_timeout
                ends = await stable_ends(timeout, written, reading, partitions)
                await self._follow_partitions(merge, reading, ends)
                async for record in merge.read(ends, f"{last:016d}{_LAST_ROW}"):
                    yield record
                yield RoundEnd(merge.offsets)
                self._done = last
                if last < progress.transaction:
                    raise ChangesLost(
                        "the pipeline was reset to another position, and changes may be missing: begin again with a "
                        "snapshot"
                    )

    def _checked(self, progress: Progress) -> int:
        """Return the ordinal of the last transaction that can be read now."""
        if progress.routes and progress.routes.fingerprint != fingerprint(self._settings.publisher.rules):
            raise RulesDiffer("publisher.routes is not what it was when this program started: start it again")
        if progress.transaction < self._done:
            raise FatalError(
                f"the pipeline has published up to transaction {progress.transaction}, but this program already has "
                f"transaction {self._done}: check the name and Kafka's address, or begin again with a snapshot"
            )
        reset = progress.reset
        if reset and not reset.snapshot and self._done < reset.transaction:
            return reset.transaction - 1
        return progress.transaction

    async def _follow_partitions(
        self, merge: Merge, reading: AIOKafkaConsumer, ends: dict[TopicPartition, int]
    ) -> None:
        """Begin to read partitions that are new, and stop to read those that are gone."""
        if gone := merge.partitions - ends.keys():
            merge.remove(gone)
        if not (new := [each for each in ends if each not in merge.partitions]):
            return
        known, starts = self._bookmark.offsets, {}
        for each, first in (await reading.beginning_offsets(new)).items():
            offset = known.get(each.topic, {}).get(each.partition)
            if offset is not None and not first <= offset <= ends[each]:
                raise ChangesLost(
                    f"topic {each.topic}, partition {each.partition}: Kafka has the offsets {first} to {ends[each]}, "
                    f"and this program needs {offset}: its records were deleted, or the topic was created again; "
                    "begin again with a snapshot"
                )
            starts[each] = first if offset is None else offset
        merge.add(starts)


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
            await asyncio.sleep(0)
        return progress

    async def _first(self) -> Progress:
        self._consumer.assign([self._partition])
        await self._consumer.seek_to_end(self._partition)  # before it is read: nothing is between
        progress = await read_progress(self._settings)
        if progress is None:
            raise KafkaUnavailable(f"pipeline {self._settings.name} has published nothing yet: start its services")
        return progress

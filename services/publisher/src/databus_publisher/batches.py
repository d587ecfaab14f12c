"""Pack records into record batches of our own, in a fraction of the time that aiokafka's `send` takes (ADR 8).

aiokafka commits a transaction even if one of its batches failed, so this module tracks the delivery of every batch.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import time_ns
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import IllegalOperation, MessageSizeTooLargeError, RecordListTooLargeError

from databus_core.errors import KafkaUnavailable, RecordTooLarge
from databus_core.settings.publisher import Compression
from databus_messages.formats.base import KeyValueRecords, Record
from databus_messages.routing.partitions import Partition
from databus_publisher.record_batch import RecordBatch

#: A partition's next batch is sent when the previous one is confirmed, so with larger batches the publisher waits less
#: often. Brokers accept 1 MiB by default. With 960 KiB, the request around the batch fits into a region of 1 MiB in the
#: broker's G1 heap, too (ADR 8).
BATCH_BYTES = 960 * 1024
#: limit for the total size of the batches that are being filled
_FILLING_BYTES = 16 * 2**20
#: limit for the total size of the batches in flight
_IN_FLIGHT_BYTES = 8 * 2**20
#: An idempotent producer retries a batch forever. If nothing is confirmed for this time, the publisher reconnects.
CONFIRM_SECONDS = 30
_NS_PER_MS = 1_000_000


class Limit(NamedTuple):
    """How large a topic's batches may be, in bytes."""

    #: what the topic accepts: limit of a batch with one record
    record: int
    #: limit of a batch with several records
    batch: int = BATCH_BYTES


#: For the topics of progress and schema history. There is no alternative for their records, such as a dead letter, so
#: their size is not checked first: Kafka rejects one that is too large. Only batches of several records are limited.
UNLIMITED = Limit(2**31, 2**18)


class Batches:
    """Fills one batch for each partition, sends the batches and tracks their delivery."""

    def __init__(self, kafka: AIOKafkaProducer, *, transactional: bool) -> None:
        self._kafka = kafka
        #: whether batches are sent in Kafka transactions
        self.transactional = transactional
        self._limits: dict[str, Limit] = {}
        #: topics whose records are compressed
        self._compression: dict[str, Compression] = {}
        #: batches that are not sent yet; those that the fast path has opened may be empty
        self._filling: dict[Partition, RecordBatch] = {}
        self._in_flight: dict[asyncio.Future[object], int] = {}
        self._in_flight_bytes = 0
        self._failure: BaseException | None = None
        #: records sent, by topic
        self._records: Counter[str] = Counter()

    def set_limit(self, topic: str, limit: Limit, compression: Compression = "none") -> None:
        """Set a topic's limit, and the compression of its records. It has to be set before the first record."""
        self._limits[topic], self._compression[topic] = limit, compression
        # While it connects, aiokafka learns the leaders of all topics. With the next topic that it asks for, it forgets
        # those that it was not told to track, and batches that are on their way to them would wait for ever.
        self._kafka.client.add_topic(topic)

    def raise_limit(self, topic: str, limit: Limit) -> None:
        """Set another limit for a topic, from its next batch on."""
        self._limits[topic] = limit

    def limit(self, topic: str) -> Limit:
        """Return a topic's limit."""
        return self._limits[topic]

    def open_batch(self, partition: Partition) -> RecordBatch | None:
        """Return the batch of a partition that is being filled; begin one if there is none.

        Returns None if the topic has no limit yet.
        """
        if partition not in self._filling and partition.topic in self._limits:
            self._filling[partition] = self._new_batch(partition.topic)
        return self._filling.get(partition)

    async def make_room(self, partition: Partition) -> bool:
        """Send the batch of a partition if it is at least half full. Return whether it was."""
        batch = self._filling[partition]
        if not batch.record_count() or batch.size() < batch.limit // 2:
            return False
        await self._submit(partition)
        return True

    def fill(self, partition: Partition, records: KeyValueRecords, first: int = 0) -> int:
        """Add records, starting at index `first`, to the partition's open batch until it is full. Return how many."""
        batch = self._filling.get(partition)
        if batch is None:
            return 0
        time_ms, ordinals = time_ns() // _NS_PER_MS, records.ordinals
        if ordinals is None:
            return batch.extend(time_ms, records.keys, records.values, first)
        return batch.extend(time_ms, records.keys, records.values, first, ordinals.transaction, ordinals.rows)

    async def send(self, partition: Partition, record: Record) -> bool:
        """Add a record to its partition's batch. If that has no room, send it, and begin a new batch with the record.

        Returns False, and sends nothing, if the record is larger than its topic accepts.
        """
        key, value, headers, *_ = record
        time_ms = time_ns() // _NS_PER_MS
        filling = self._filling.get(partition)
        # An empty batch would accept a first record of any size.
        if filling is not None and filling.record_count() and filling.append(time_ms, key, value, headers):
            return True
        limit = self._limits[partition.topic]
        if value and len(value) >= limit.record:
            return False
        batch = self._new_batch(partition.topic)
        batch.append(time_ms, key, value, headers)  # a batch always accepts its first record
        if batch.size() > limit.record:
            return False
        if filling is not None:
            await self._submit(partition)
        self._filling[partition] = batch
        if batch.size() >= limit.batch:
            await self._submit(partition)
        return True

    def _new_batch(self, topic: str) -> RecordBatch:
        limit, compression = min(self._limits[topic]), self._compression[topic]
        return RecordBatch(limit, transactional=self.transactional, compression=compression)

    async def limit_memory(self) -> None:
        """Send batches that are not full yet if all of them together use too much memory."""
        few = len(self._filling) * BATCH_BYTES <= _FILLING_BYTES
        if not few and sum(batch.size() for batch in self._filling.values()) > _FILLING_BYTES:
            await self._submit_all()

    async def flush(self) -> None:
        """Send everything and wait until it is delivered. Raises the error of a failed delivery."""
        await self._submit_all()
        await self.wait_until_delivered()
        self.raise_failure()

    async def wait_until_delivered(self, bytes_left: int = 0) -> None:
        """Wait until at most `bytes_left` are in flight, whether delivery succeeds or not.

        Raises KafkaUnavailable if Kafka confirms nothing for `CONFIRM_SECONDS`.
        """
        with confirmed_in_time():
            while self._in_flight_bytes > bytes_left:
                async with asyncio.timeout(CONFIRM_SECONDS):
                    await asyncio.wait(self._in_flight, return_when=asyncio.FIRST_COMPLETED)

    def discard(self) -> None:
        """Discard the batches that have not been sent, and the counts of the records that have been."""
        self._records.clear()
        self._filling.clear()

    def take_records(self) -> Counter[str]:
        """Return the number of records sent since the last call, by topic."""
        records, self._records = self._records, Counter()
        return records

    def raise_failure(self) -> None:
        """Raise the error of a failed delivery, if there is one."""
        if self._failure:
            raise self._failure

    async def begin(self) -> None:
        """Prepare to send a batch: nothing is needed without transactions."""

    async def _submit_all(self) -> None:
        for partition in list(self._filling):
            await self._submit(partition)

    async def _submit(self, partition: Partition) -> None:
        self.raise_failure()  # aiokafka's own error would only say that the call is illegal
        topic, number, _ = partition
        batch = self._filling.pop(partition)
        size, records = batch.size(), batch.record_count()
        if not records:
            return
        try:
            await self.begin()
            delivery = await self._hand_over(batch, topic, number)
        except BaseException as error:  # also a cancellation: without these records nothing may be committed
            self._failure = self._failure or KafkaUnavailable(
                f"records for {topic} were not sent: {str(error) or type(error).__name__}"
            )
            raise
        self._in_flight[delivery] = size
        self._in_flight_bytes += size
        self._records[topic] += records
        delivery.add_done_callback(partial(self._done, topic, records))
        await self.wait_until_delivered(_IN_FLIGHT_BYTES)

    async def _hand_over(self, batch: RecordBatch, topic: str, number: int) -> "asyncio.Future[object]":
        """Give a batch to aiokafka. After a failed transaction, raises a batch's first error, or KafkaUnavailable."""
        try:
            delivery: asyncio.Future[object] = await self._kafka.send_batch(batch, topic, partition=number)
        except IllegalOperation as error:
            # aiokafka knows that the transaction has failed; the batches in flight are about to fail with the reason.
            await self.wait_until_delivered()
            self.raise_failure()
            raise KafkaUnavailable("the Kafka transaction has failed") from error
        return delivery

    def _done(self, topic: str, records: int, delivery: "asyncio.Future[object]") -> None:
        size = self._in_flight.pop(delivery)
        self._in_flight_bytes -= size
        error: BaseException | None
        if delivery.cancelled():
            error = KafkaUnavailable(f"records for {topic} were not delivered: cancelled")
        else:
            error = delivery.exception()
        if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError):
            error = RecordTooLarge(topic, size, records)
        self._failure = self._failure or error


@contextmanager
def confirmed_in_time() -> Iterator[None]:
    """Turn a timeout into KafkaUnavailable."""
    try:
        yield
    except TimeoutError as error:
        raise KafkaUnavailable(
            f"Kafka confirmed nothing for {CONFIRM_SECONDS} s (check that all brokers of kafka.bootstrap_servers run)"
        ) from error

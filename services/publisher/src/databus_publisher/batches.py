"""Records are collected into batches of our own (`send_batch`, a fifteenth of the cost of `send`), in bounded memory.

aiokafka commits a transaction even if a batch in it failed, so every batch's delivery is followed.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError, RecordListTooLargeError

from databus.errors import KafkaUnavailable, RecordTooLarge
from databus_messages.formats.base import Headers, KeyValueRecords, Record
from databus_publisher.record_batch import RecordBatch

#: A partition's next batch leaves when this one is confirmed: larger ones wait less often. Brokers take 1 MiB by
#: default, and the request of one batch still has room in one region of 1 MiB of their heap.
BATCH_BYTES = 960 * 1024
#: in batches that are being filled, and in those that are on their way
_FILLING_BYTES = 16 * 2**20
_FLYING_BYTES = 8 * 2**20
#: An idempotent producer never gives a batch up by itself; we do, to be seen as not ready and to begin anew.
CONFIRM_SECONDS = 30


class Limit(NamedTuple):
    """What a topic takes, in bytes of a batch: of one record, and of several."""

    record: int
    batch: int = BATCH_BYTES


#: for our own records, none of which can be left out: Kafka decides, and is not asked what it takes
UNLIMITED = Limit(2**31, 2**18)


class Lane:
    """A partition, and the batch that is being filled for it."""

    def __init__(self, topic: str, partition: int, limit: Limit) -> None:
        self.topic = topic
        self.partition = partition
        self.limit = limit
        self.batch: RecordBatch | None = None

    def append(self, key: bytes | None, value: bytes | None, headers: Headers = ()) -> bool:
        """Put a record into the batch; False if there is none or it is full."""
        return self.batch is not None and self.batch.append(key, value, headers)

    def extend(self, records: Sequence[Record], first: int = 0) -> int:
        """Put plain records into the batch, from the first on and up to one without room; tells how many."""
        if self.batch is None or not isinstance(records, KeyValueRecords):
            return 0
        return self.batch.extend(records, first)


class Batches:
    """Fills batches, sends them off and follows their delivery."""

    def __init__(self, kafka: AIOKafkaProducer, *, transactional: bool) -> None:
        self._kafka = kafka
        self._transactional = transactional
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._filling: dict[Lane, RecordBatch] = {}
        self._flying: dict[asyncio.Future[object], int] = {}
        self._flying_bytes = 0
        self._failure: BaseException | None = None
        #: records sent off by topic
        self._records: Counter[str] = Counter()

    def lane(self, topic: str, partition: int, limit: Limit) -> Lane:
        """Give the one lane of a partition."""
        return self._lanes.setdefault((topic, partition), Lane(topic, partition, limit))

    async def send(self, lane: Lane, key: bytes | None, value: bytes | None, headers: Headers = ()) -> bool:
        """Send a record; False, and nothing is sent, if its topic does not take it."""
        if lane.append(key, value, headers):
            return True
        if value and len(value) >= lane.limit.record:
            return False
        batch = RecordBatch(min(lane.limit), transactional=self._transactional)
        batch.append(key, value, headers)  # the first one always finds room
        if batch.size() > lane.limit.record:
            return False
        if lane.batch is not None:
            await self._submit(lane)
        lane.batch = self._filling[lane] = batch
        if batch.size() >= lane.limit.batch:
            await self._submit(lane)
        return True

    async def relieve(self) -> None:
        """Send batches off that are not full yet if there are so many that they take too much memory."""
        few = len(self._filling) * BATCH_BYTES <= _FILLING_BYTES
        if not few and sum(batch.size() for batch in self._filling.values()) > _FILLING_BYTES:
            await self._submit_all()

    async def flush(self) -> None:
        """Send all off and wait until all is delivered. Raises what made a delivery fail."""
        await self._submit_all()
        await self.landed()
        self.raise_failure()

    async def landed(self, bytes_left: int = 0) -> None:
        """Wait until no more than so much is on its way, delivered or not. Raises KafkaUnavailable."""
        with confirmed_in_time():
            while self._flying_bytes > bytes_left:
                async with asyncio.timeout(CONFIRM_SECONDS):
                    await asyncio.wait(self._flying, return_when=asyncio.FIRST_COMPLETED)

    def discard(self) -> None:
        """Forget what has not been sent off."""
        self._records.clear()
        for lane in self._filling:
            lane.batch = None
        self._filling.clear()

    def take_records(self) -> Counter[str]:
        """Tell, once, how many records were sent off, by topic."""
        records, self._records = self._records, Counter()
        return records

    def raise_failure(self) -> None:
        """Raise what made a delivery fail, if one did."""
        if self._failure:
            raise self._failure

    async def begin(self) -> None:
        """Make ready to send a batch off."""

    async def _submit_all(self) -> None:
        for lane in list(self._filling):
            await self._submit(lane)

    async def _submit(self, lane: Lane) -> None:
        self.raise_failure()  # before aiokafka says that all that follows is illegal
        batch, lane.batch = self._filling.pop(lane), None
        size, records = batch.size(), batch.record_count()
        try:
            await self.begin()
            delivery = await self._kafka.send_batch(batch, lane.topic, partition=lane.partition)
        except BaseException as error:  # cancelled, too: without these records nothing may be committed
            self._failure = self._failure or KafkaUnavailable(
                f"records for {lane.topic} were not sent: {str(error) or type(error).__name__}"
            )
            raise
        self._flying[delivery] = size
        self._flying_bytes += size
        self._records[lane.topic] += records
        delivery.add_done_callback(partial(self._landed, lane.topic, records))
        await self.landed(_FLYING_BYTES)

    def _landed(self, topic: str, records: int, delivery: "asyncio.Future[object]") -> None:
        size = self._flying.pop(delivery)
        self._flying_bytes -= size
        error = None if delivery.cancelled() else delivery.exception()
        if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError):
            error = RecordTooLarge(topic, size, records)
        self._failure = self._failure or error


@contextmanager
def confirmed_in_time() -> Iterator[None]:
    """Turn a timeout into KafkaUnavailable."""
    try:
        yield
    except TimeoutError as error:
        raise KafkaUnavailable(f"Kafka confirmed nothing for {CONFIRM_SECONDS} s") from error

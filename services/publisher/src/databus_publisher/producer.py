"""The pipeline's Kafka producer: sends records, and commits them and the progress that they reach."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaProducer
from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced
from aiokafka.producer import sender

from databus_core import kafka_client, names
from databus_core.errors import DatabusError, FatalError, KafkaUnavailable, RecordTooLarge
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import publisher as metrics
from databus_core.progress import Progress, encode_progress
from databus_core.settings import Settings
from databus_messages.formats.base import Record
from databus_messages.routing.partitions import Partition
from databus_publisher.batches import CONFIRM_SECONDS, UNLIMITED, Batches, confirmed_in_time

log = get_logger(__name__)

_LEAVE_SECONDS = 5
#: Kafka answers a commit before it has written the markers to all partitions. Until it has, it rejects the next
#: transaction, and aiokafka waits this long before it tries again. With aiokafka's own 20 ms, transactions beside a
#: backfill took a third longer at p99.
_RETRY_SECONDS = 0.001
sender.BACKOFF_OVERRIDE = _RETRY_SECONDS


class Producer(Batches, ABC):
    """Sends records, and commits them and the progress that they reach."""

    def __init__(self, kafka: AIOKafkaProducer, pipeline: str, *, transactional: bool) -> None:
        super().__init__(kafka, transactional=transactional)
        self._key = pipeline.encode()
        self._progress = Partition(names.progress_topic(pipeline), 0)
        #: a commit that was started, until `finish_commit` has seen that it succeeded
        self.committing: asyncio.Task[None] | None = None
        self.set_limit(self._progress.topic, UNLIMITED)

    @abstractmethod
    async def start_commit(self, progress: Progress) -> None:
        """Start to commit the records sent since the last commit, and the progress that they reach.

        Records sent from now on are collected; the first full batch waits until this commit has ended.
        """

    @abstractmethod
    async def finish_commit(self) -> None:
        """Wait until the commit that was started has ended, if there is one.

        Raises the error of a failed delivery. Raises KafkaUnavailable if Kafka does not confirm the commit in time; the
        records may be committed nevertheless.
        """

    async def commit(self, progress: Progress) -> None:
        """Start a commit, and wait until it has ended."""
        await self.start_commit(progress)
        await self.finish_commit()

    @abstractmethod
    async def abort(self) -> None:
        """Discard the records sent since the last commit, if possible. Raises the error of a failed delivery."""

    @abstractmethod
    async def recommit_progress(self, progress: Progress) -> None:
        """Commit the progress again, before a generation opens: it fails if another publisher has replaced this one."""

    async def partitions(self, topic: str) -> int:
        """Return the number of a topic's partitions."""
        return len(await self._kafka.partitions_for(topic))

    async def leave(self) -> None:
        """Call `abort` before disconnecting, so that consumers need not wait for the next publisher to do it."""
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self.abort()
        except (KafkaError, DatabusError, TimeoutError):
            text = "the open transaction could not be aborted while disconnecting; the next publisher will abort it"
            log.info(LogEvent.TRANSACTION_LEFT_OPEN, text)

    async def _send_progress(self, progress: Progress) -> None:
        await self.send(self._progress, Record(self._key, encode_progress(progress)))

    def _count_committed(self) -> None:
        for topic, records in self.take_records().items():
            if topic != self._progress.topic:
                metrics.RECORDS.labels(topic).inc(records)


class ExactlyOnce(Producer):
    """Sends in Kafka transactions. Each starts with its first batch and ends with a commit or an abort."""

    def __init__(self, kafka: AIOKafkaProducer, pipeline: str) -> None:
        super().__init__(kafka, pipeline, transactional=True)
        self._open = False
        self._begun = 0.0

    @property
    def age(self) -> float:
        """Age in seconds of the transaction that is open or could not be ended; 0 if there is none."""
        return time.monotonic() - self._begun if self._begun else 0.0

    async def begin(self) -> None:
        """Begin a transaction if none is open, after the one before has ended."""
        await self._wait_for_commit()
        if not self._open:
            await self._kafka.begin_transaction()
            self._open, self._begun = True, time.monotonic()

    async def start_commit(self, progress: Progress) -> None:
        """Send the last batches of the transaction, and let it end meanwhile."""
        await self._send_progress(progress)
        await self._submit_all()
        self.committing = asyncio.create_task(self._commit())

    async def finish_commit(self) -> None:
        """Wait until the transaction has ended."""
        await self._wait_for_commit()
        self.committing = None

    async def recommit_progress(self, progress: Progress) -> None:
        """Commit the progress once more: Kafka rejects this if the publisher was replaced while it was paused."""
        await self.commit(progress)

    async def abort(self) -> None:
        """Abort the transaction, if one is open."""
        await self.finish_commit()
        self.discard()
        self.raise_failure()
        if self._open:
            await self._end(self._kafka.abort_transaction)

    async def _wait_for_commit(self) -> None:
        if self.committing:
            await asyncio.wait({self.committing})  # unlike `await`, does not pass a cancellation on
            self.committing.result()

    async def _commit(self) -> None:
        with metrics.COMMIT_SECONDS.time():
            await self.wait_until_delivered()
            self.raise_failure()
            await self._end(self._kafka.commit_transaction)
        self._count_committed()

    async def _end(self, end: Callable[[], Awaitable[None]]) -> None:
        self._open = False  # even if `end` fails, the transaction can no longer be committed or aborted
        with confirmed_in_time():
            async with asyncio.timeout(CONFIRM_SECONDS):
                await end()
        self._begun = 0.0


class AtLeastOnce(Producer):
    """Delivers the data first, then the progress. Records sent before an abort are sent again."""

    def __init__(self, kafka: AIOKafkaProducer, pipeline: str) -> None:
        super().__init__(kafka, pipeline, transactional=False)

    async def start_commit(self, progress: Progress) -> None:
        """Deliver all data, then the progress."""
        with metrics.COMMIT_SECONDS.time():
            await self.flush()
            await self._send_progress(progress)
            await self.flush()
        self._count_committed()

    async def finish_commit(self) -> None:
        """Do nothing: `start_commit` has waited."""

    async def recommit_progress(self, progress: Progress) -> None:
        """Do nothing: without transactions Kafka fences nobody, and a commit here could set progress back."""

    async def abort(self) -> None:
        """Wait for the records in flight: later ones must come after them."""
        self.discard()
        await self.wait_until_delivered()
        self.raise_failure()


@asynccontextmanager
async def open_producer(settings: Settings) -> AsyncIterator[Producer]:
    """Start the pipeline's producer. With transactions, Kafka fences the previous one and aborts its transaction."""
    timeout = settings.publisher.transaction_timeout
    exactly_once = settings.publisher.delivery == "exactly_once"
    identity = names.transactional_id(settings.name) if exactly_once else None
    async with kafka_client.producer(settings.kafka, identity, timeout) as kafka:
        producer: Producer = (ExactlyOnce if exactly_once else AtLeastOnce)(kafka, settings.name)
        kafka_failed = False
        try:
            yield producer
        except (ProducerFenced, InvalidProducerEpoch) as error:
            kafka_failed = True
            if isinstance(producer, ExactlyOnce) and producer.age > timeout:
                raise FatalError(
                    f"a source transaction took longer to publish than publisher.transaction_timeout={timeout:g}s: "
                    "raise it, and the broker's transaction.max.timeout.ms if it is smaller"
                ) from error
            raise
        except (KafkaError, KafkaUnavailable, RecordTooLarge):
            kafka_failed = True
            raise
        finally:
            try:
                if not kafka_failed:
                    await producer.leave()
            finally:
                if committing := producer.committing:
                    committing.cancel()
                    await asyncio.gather(committing, return_exceptions=True)

"""A transactional Kafka producer that is fed records and ends transactions where it is told to.

Records are collected into batches of our own (`create_batch`/`send_batch`, a fifteenth of the cost of `send`). aiokafka
commits a transaction even if a batch in it failed, so every batch's delivery is awaited before the commit.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from databus import names
from databus.errors import KafkaUnavailable
from databus.progress import Progress, encode_progress
from databus.settings import Settings

log = logging.getLogger("databus.publisher")

_BATCH_BYTES = 512 * 1024
#: A source transaction may take this long to pass; brokers allow no more by default (transaction.max.timeout.ms).
_TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000
_CLOSE_SECONDS = 5
#: An idempotent producer never gives a batch up by itself; we do, to be seen as not ready and to begin anew.
_CONFIRM_SECONDS = 30


class Producer:
    """The open Kafka transaction of a pipeline."""

    def __init__(self, kafka: AIOKafkaProducer, pipeline: str) -> None:
        self._kafka = kafka
        self._pipeline = pipeline
        self._batches: dict[tuple[str, int], Any] = {}
        self._deliveries: list[asyncio.Future[object]] = []
        self._open = False
        #: bytes sent into the open transaction
        self.size = 0

    async def send(self, topic: str, partition: int, key: bytes, value: bytes | None) -> None:
        """Send a record into the open transaction; one is begun if there is none."""
        if not self._open:
            await self._kafka.begin_transaction()
            self._open = True
        self.size += len(key) + len(value or b"")
        batch = self._batches.get((topic, partition))
        if batch is not None and batch.append(timestamp=None, key=key, value=value) is not None:
            return
        if batch is not None:
            await self._submit(topic, partition)
        batch = self._batches[topic, partition] = self._kafka.create_batch()
        batch.append(timestamp=None, key=key, value=value)

    async def commit(self, progress: Progress) -> None:
        """Commit what was sent since the last commit, together with the progress it reaches.

        Raises KafkaUnavailable if Kafka does not confirm it in time; whether it was committed is then unknown.
        """
        await self.send(names.progress_topic(self._pipeline), 0, self._pipeline.encode(), encode_progress(progress))
        with _confirmed_in_time():
            async with asyncio.timeout(_CONFIRM_SECONDS):
                for topic, partition in list(self._batches):
                    await self._submit(topic, partition)
                await asyncio.gather(*self._deliveries)
                self._open = False  # from here on it cannot be aborted any more
                await self._kafka.commit_transaction()
        self._deliveries.clear()
        self.size = 0

    async def partitions(self, topic: str) -> int:
        """Count a topic's partitions."""
        return len(await self._kafka.partitions_for(topic))

    async def abort(self) -> None:
        """Abort what was sent since the last commit. Raises what made a delivery fail, if one did."""
        self._batches.clear()
        if self._open:
            self._open = False
            for delivery in self._deliveries:
                _delivered(delivery)
            with _confirmed_in_time():
                async with asyncio.timeout(_CONFIRM_SECONDS):
                    await self._kafka.abort_transaction()
        self._deliveries.clear()
        self.size = 0

    async def close(self, *, failed: bool) -> None:
        """Disconnect. Unless Kafka failed, abort what is open, so that consumers need not wait for our successor."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                if not failed:
                    await self.abort()
        except (KafkaError, KafkaUnavailable, TimeoutError):
            log.info("Kafka did not answer while disconnecting; what is open is aborted by the next publisher")
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._kafka.stop()
        except (KafkaError, TimeoutError):
            await self._kafka.client.close()

    async def _submit(self, topic: str, partition: int) -> None:
        # A failed delivery is raised first: aiokafka only says of later calls that they are illegal.
        self._deliveries = [d for d in self._deliveries if not _delivered(d)]
        batch = self._batches.pop((topic, partition))
        delivery = await self._kafka.send_batch(batch, topic, partition=partition)
        delivery.add_done_callback(_retrieved)
        self._deliveries.append(delivery)


@contextmanager
def _confirmed_in_time() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise KafkaUnavailable(f"Kafka confirmed nothing for {_CONFIRM_SECONDS} s") from error


def _delivered(delivery: "asyncio.Future[object]") -> bool:
    """Say whether a delivery is done; raises its error if it failed."""
    if delivery.done() and not delivery.cancelled():  # cancelled: whoever awaited it was, the batch goes on
        delivery.result()
    return delivery.done()


def _retrieved(delivery: "asyncio.Future[object]") -> None:
    """Mark an error as seen: whoever awaits the delivery raises it, unless the transaction ended before."""
    if not delivery.cancelled():
        delivery.exception()


@asynccontextmanager
async def open_producer(settings: Settings) -> AsyncIterator[Producer]:
    """Start the pipeline's producer: Kafka fences its predecessor and aborts what that left open."""
    kafka = AIOKafkaProducer(
        bootstrap_servers=settings.kafka.bootstrap_servers,
        transactional_id=names.transactional_id(settings.name),
        transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
        max_batch_size=_BATCH_BYTES,
    )
    producer, failed = Producer(kafka, settings.name), False
    try:
        await kafka.start()
        yield producer
    except (KafkaError, KafkaUnavailable):
        failed = True
        raise
    finally:
        await producer.close(failed=failed)

"""Read compacted topics with one partition: the latest value of each key, and later records as they are written."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from databus_core.errors import KafkaUnavailable
from databus_core.kafka_client import consumer, records
from databus_core.kafka_topics import offsets_of
from databus_core.settings import Kafka

#: how long one request waits for new records, in ms
_POLL_MS = 500


async def read_latest(kafka: Kafka, topic: str) -> tuple[dict[bytes, bytes], int]:
    """Read the latest committed value of each key that is not deleted, and the offset up to which was read.

    There is nothing, up to offset 0, if the topic does not exist; it is not created. Raises KafkaUnavailable, and
    FatalError if Kafka refuses access.
    """
    partition = TopicPartition(topic, 0)
    found: dict[bytes, bytes | None] = {}
    async with consumer(kafka) as reading:
        if (bounds := await offsets_of(reading, partition)) is None:
            return {}, 0
        reading.assign([partition])
        async for record in records(reading, {partition: bounds}):
            found[record.key] = record.value
    return {key: value for key, value in found.items() if value is not None}, bounds[1]


class Follower:
    """Reads what is committed to a topic, from an offset on."""

    def __init__(self, reading: AIOKafkaConsumer, topic: str, offset: int) -> None:
        self._reading = reading
        self._partition = TopicPartition(topic, 0)
        reading.assign([self._partition])
        reading.seek(self._partition, offset)

    async def take(self) -> list[tuple[bytes, bytes | None]]:
        """Return keys and values of new records, in order; none if there are none for half a second.

        Raises KafkaUnavailable; it can be called again afterwards.
        """
        try:
            found = await self._reading.getmany(self._partition, timeout_ms=_POLL_MS)
        except KafkaError as error:
            raise KafkaUnavailable(f"topic {self._partition.topic} cannot be read: {error}") from error
        return [(record.key, record.value) for record in found.get(self._partition, ())]


@asynccontextmanager
async def following(kafka: Kafka, topic: str, offset: int) -> AsyncIterator[Follower]:
    """Connect, to follow an existing topic. Raises KafkaUnavailable, and FatalError if Kafka refuses access."""
    async with consumer(kafka) as reading:
        yield Follower(reading, topic, offset)

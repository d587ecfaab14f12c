"""Put what cannot be published into the dead-letter topic, in the transaction it belongs to."""

import logging

from databus import metrics
from databus.dead_letters import DeadLetter
from databus.errors import FatalError
from databus_publisher.batches import Lane
from databus_publisher.producer import Producer
from databus_publisher.topics import Topics

log = logging.getLogger("databus.publisher")


class DeadLetters:
    """Writes dead letters; their topic is made when there is the first one."""

    def __init__(self, producer: Producer, topics: Topics) -> None:
        self._producer = producer
        self._topics = topics
        self._lane: Lane | None = None
        self._told: set[tuple[str, str]] = set()

    async def write(self, letter: DeadLetter, value: bytes = b"") -> None:
        """Write a dead letter, with the original value where it fits."""
        if self._lane is None:
            topic = await self._topics.ensure_dead_letters()
            self._lane = self._producer.lane(topic, 0, await self._topics.limit(topic))
        headers = letter.headers()
        if not await self._producer.send(self._lane, letter.id, value, headers):
            value = b""
            if not await self._producer.send(self._lane, letter.id, value, headers):
                raise FatalError(
                    f"{letter.error}; topic {self._lane.topic} takes no dead letter: raise max.message.bytes"
                )
        metrics.DEAD_LETTERS.labels(letter.reason).inc()
        if (letter.schema, letter.table) not in self._told:
            self._told.add((letter.schema, letter.table))
            log.warning("dead letter: %s (the first one of this table since the generation began)", letter.error)

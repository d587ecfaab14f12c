"""Read the dead-letter topic: a letter counts until a tombstone follows it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from databus import names
from databus.dead_letters import DeadLetter, read_headers
from databus.kafka_client import consumer, records
from databus.kafka_topics import offsets_of
from databus.settings import Settings


@dataclass(frozen=True)
class Letter:
    """A dead letter without its value."""

    offset: int
    #: key of its record
    id: bytes
    told: DeadLetter
    has_value: bool

    @property
    def time(self) -> str:
        """When the source committed the change."""
        return datetime.fromtimestamp(self.told.time / 1e6, UTC).isoformat(" ", "seconds").removesuffix("+00:00")

    @property
    def summary(self) -> dict[str, object]:
        """Tell everything but the value."""
        told: dict[str, object] = msgspec.to_builtins(self.told, builtin_types=[bytes])
        key = self.told.key.decode(errors="replace") if self.told.key is not None else None
        return told | {"id": self.id.decode(), "key": key, "value": self.has_value}


class Letters:
    """What the topic holds up to now."""

    def __init__(self, consumer: AIOKafkaConsumer, partition: TopicPartition, begin: int, end: int) -> None:
        self._consumer = consumer
        self._partition = partition
        self._begin = begin
        self._end = end

    async def unanswered(self) -> list[Letter]:
        """Give the letters that were not replayed, oldest first."""
        found: dict[bytes, Letter] = {}
        async for record in records(self._consumer, self._partition, self._begin, self._end):
            found.pop(record.key, None)
            if record.value is not None:
                found[record.key] = Letter(record.offset, record.key, read_headers(record.headers), bool(record.value))
        return list(found.values())

    async def values(self, letters: list[Letter]) -> AsyncIterator[tuple[Letter, bytes]]:
        """Give these letters once more, with their values."""
        wanted = {letter.offset: letter for letter in letters}
        async for record in records(self._consumer, self._partition, self._begin, self._end):
            if letter := wanted.get(record.offset):
                yield letter, record.value


@asynccontextmanager
async def open_letters(settings: Settings) -> AsyncIterator[Letters]:
    """Open the dead-letter topic; without the topic there are no dead letters."""
    partition = TopicPartition(names.dead_letter_topic(settings.name), 0)
    async with consumer(settings.kafka) as reading:
        begin, end = await offsets_of(reading, partition) or (0, 0)
        if end:
            reading.assign([partition])
        yield Letters(reading, partition, begin, end)

"""Read the dead-letter topic. A tombstone with the key of a dead letter means that it was replayed or discarded."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from databus_core import names
from databus_core.dead_letters import DeadLetter, read_headers
from databus_core.errors import PoisonError
from databus_core.kafka_client import consumer, records
from databus_core.kafka_topics import offsets_of
from databus_core.settings import Settings


@dataclass(frozen=True)
class Letter:
    """A dead letter without its value."""

    #: offset in the dead-letter topic
    offset: int
    #: key in the dead-letter topic; `about.key` is the key of the record that was not published
    id: bytes
    about: DeadLetter
    #: whether the dead letter contains the value of the record that was not published
    has_value: bool

    @property
    def time(self) -> str:
        """The time at which the source committed the change, in UTC."""
        return datetime.fromtimestamp(self.about.time / 1e6, UTC).isoformat(" ", "seconds").removesuffix("+00:00")

    @property
    def summary(self) -> dict[str, object]:
        """The letter's line in `deadletter list --json`: headers, `id`, and as `value` whether the value was kept.

        The key and the headers of the record are text, in which bytes that are not UTF-8 are replaced.
        """
        summary: dict[str, object] = msgspec.to_builtins(self.about, builtin_types=[bytes])
        key = self.about.key.decode(errors="replace") if self.about.key is not None else None
        headers = {name: value.decode(errors="replace") for name, value in self.about.record_headers}
        return summary | {"id": self.id.decode(), "key": key, "record_headers": headers, "value": self.has_value}


class Letters:
    """The dead letters of the topic, from offset `begin` up to `end`: later letters are not read."""

    def __init__(self, consumer: AIOKafkaConsumer, partition: TopicPartition, begin: int, end: int) -> None:
        self._consumer = consumer
        self._partition = partition
        self._begin = begin
        self._end = end

    async def pending(self) -> list[Letter]:
        """Return the latest letter of each key unless a tombstone follows, in the order of the topic.

        Raises PoisonError if the latest record of a key is neither a dead letter nor a tombstone.
        """
        found: dict[bytes, tuple[int, Sequence[tuple[str, bytes]], bool]] = {}
        async for record in records(self._consumer, {self._partition: (self._begin, self._end)}):
            found.pop(record.key, None)
            if record.value is not None:
                found[record.key] = record.offset, record.headers, bool(record.value)
        return [
            Letter(offset, key, self._read_headers(offset, headers), has_value)
            for key, (offset, headers, has_value) in found.items()
        ]

    def _read_headers(self, offset: int, headers: Sequence[tuple[str, bytes]]) -> DeadLetter:
        try:
            return read_headers(headers)
        except PoisonError as error:
            raise PoisonError(
                f"{error} (offset {offset} of {self._partition.topic}): write a tombstone with its key to discard it"
            ) from error

    async def values(self, letters: list[Letter]) -> AsyncIterator[tuple[Letter, bytes]]:
        """Yield each of these letters with its value, except those that Kafka has compacted away meanwhile."""
        wanted = {letter.offset: letter for letter in letters}
        async for record in records(self._consumer, {self._partition: (self._begin, self._end)}):
            if letter := wanted.get(record.offset):
                yield letter, record.value


@asynccontextmanager
async def open_letters(settings: Settings) -> AsyncIterator[Letters]:
    """Open the dead-letter topic. If it does not exist, there are no dead letters."""
    partition = TopicPartition(names.dead_letter_topic(settings.name), 0)
    async with consumer(settings.kafka) as reading:
        begin, end = await offsets_of(reading, partition) or (0, 0)
        if end:
            reading.assign([partition])
        yield Letters(reading, partition, begin, end)

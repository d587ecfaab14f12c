"""The two services without their connections: each its own main path, on the real ends of the pipe."""

from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from databus.errors import GenerationLost, KafkaUnavailable
from databus.events import decode_events
from databus.pipe import PublisherEnd, ReaderEnd
from databus.progress import Progress
from databus.settings import Settings
from databus_publisher.batches import Limit
from databus_publisher.publication import COMMIT_BYTES, Publication
from model.memory_kafka import MemoryKafka, MemoryProducer
from model.source import Source
from model.turns import request

_SETTINGS = Settings(name="model")
#: entries taken at once; after every second one, the next end of a source transaction is committed
_ENTRIES = 3
_ENTRY_BYTES = COMMIT_BYTES // 2


class _Topics:
    async def ensure(self, topic: str) -> None:
        """Any topic exists."""

    async def limit(self, topic: str) -> Limit:
        return Limit(2**20)


async def read(redis: Any, source: Source, host: int, size: int) -> None:
    """The work of the reader's service: retire, then claim and append, generation by generation.

    `size` is the events of an entry: with few a transaction needs several, with many an entry holds several.
    """
    pipe = ReaderEnd(redis, _SETTINGS.name)
    await pipe.retire()
    while True:
        while (progress := await pipe.claim()) is None:
            pass
        log = source.read(host, progress)
        with suppress(GenerationLost):
            await pipe.append(msgspec.msgpack.encode([next(log)]))  # the start, by itself
            while True:
                # None is the end of the log for now.
                events = list(islice(iter(log.__next__, None), size))
                if events:
                    await pipe.append(msgspec.msgpack.encode(events))
                else:
                    await pipe.backlog()
        await pipe.give_up()


async def publish(redis: Any, kafka: MemoryKafka) -> None:
    """The work of the publisher's service: fence the predecessor, then open and publish, generation by generation."""
    unavailable = KafkaUnavailable("no answer")
    producer: Any = MemoryProducer(kafka, await request(kafka.begin_epoch, unavailable))
    progress = await request(lambda: kafka.progress, unavailable) or Progress()
    pipe = PublisherEnd(redis, _SETTINGS.name)
    topics: Any = _Topics()
    while True:
        publication = Publication(_SETTINGS, producer, topics, progress)
        await producer.prove(progress)
        await pipe.open(progress)
        with suppress(GenerationLost):
            await _publish(pipe, publication)
        await producer.abort()
        progress = publication.committed


async def _publish(pipe: PublisherEnd, publication: Publication) -> None:
    while True:
        entries = await pipe.take(count=_ENTRIES, block_ms=500)
        for entry in entries:
            await publication.add(decode_events(entry.payload), _ENTRY_BYTES)
        if entries:
            await pipe.trim(entries)
        if pipe.drained and publication.committable:
            await publication.commit()
            await pipe.trim()

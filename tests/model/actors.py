"""The programs that the actors of `model.turns` run: the main paths of reader and publisher, on the real pipe."""

from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from databus_core.errors import GenerationLost, KafkaUnavailable
from databus_core.pipe import PublisherEnd, ReaderEnd
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.settings.topic_claims import known_claims
from databus_publisher.batches import Limit
from databus_publisher.publication import COMMIT_BYTES, Publication
from model.memory_kafka import MemoryKafka, MemoryProducer
from model.source import Source
from model.turns import request

_SETTINGS = Settings(name="model")
#: number of entries that the publisher takes at once
_ENTRIES = 3
#: assumed size of an entry: two entries are enough for a commit at the next end of a source transaction
_ENTRY_BYTES = COMMIT_BYTES // 2


class _Topics:
    async def ensure(self, topic: str) -> None:
        """Do nothing: all topics exist."""

    async def limit(self, topic: str) -> Limit:
        return Limit(2**20)


async def read(redis: Any, source: Source, host: int, size: int) -> None:
    """Do the work of the reader's service: retire, then claim and append, generation by generation.

    `size` is the number of events in an entry. If it is small, a transaction needs several entries; if it is large,
    an entry has several transactions.
    """
    pipe = ReaderEnd(redis, _SETTINGS.name)
    await pipe.end_any_generation()
    while True:
        while (progress := await pipe.claim()) is None:
            pass
        log = source.read(host, progress)
        with suppress(GenerationLost):
            await pipe.append(msgspec.msgpack.encode([next(log)]))  # the Start, in an entry of its own
            while True:
                # At the current end of its log, the source yields None.
                events = list(islice(iter(log.__next__, None), size))
                if events:
                    await pipe.append(msgspec.msgpack.encode(events))
                else:
                    await pipe.backlog()
        await pipe.end_generation()


async def publish(redis: Any, kafka: MemoryKafka) -> None:
    """Do the publisher's work: fence the predecessor, then open and publish, generation by generation."""
    unavailable = KafkaUnavailable("no answer")
    producer: Any = MemoryProducer(kafka, await request(kafka.begin_epoch, unavailable))
    progress = await request(lambda: kafka.progress, unavailable) or Progress()
    pipe = PublisherEnd(redis, _SETTINGS.name)
    topics: Any = _Topics()
    while True:
        publication = Publication(_SETTINGS, producer, topics, progress, known_claims(_SETTINGS, []))
        await producer.recommit_progress(progress)
        await pipe.open(progress)
        with suppress(GenerationLost):
            await _publish(pipe, publication)
        progress = await publication.abandon()


async def _publish(pipe: PublisherEnd, publication: Publication) -> None:
    while True:
        entries = await pipe.take(count=_ENTRIES, block_ms=500)
        for entry in entries:
            publication._size += _ENTRY_BYTES  # as if entries were as large as under load
            await publication.add(entry.payload)
        if entries:
            await pipe.trim(entries)
        if pipe.drained:
            await publication.commit()
            await pipe.trim()

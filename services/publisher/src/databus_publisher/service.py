"""The publisher's main path: open → read → encode → produce → commit."""

import logging

from databus import metrics
from databus.connections import connect_redis, kafka_errors
from databus.election import leading, open_lease
from databus.errors import GenerationLost
from databus.events import decode_events
from databus.kafka_progress import read_progress
from databus.pipe import PublisherEnd
from databus.progress import Progress
from databus.runtime import Health
from databus.settings import Settings
from databus_publisher.producer import Producer, open_producer
from databus_publisher.publication import Publication
from databus_publisher.topics import open_topics

log = logging.getLogger("databus.publisher")

_ENTRIES = 16
_BLOCK_MS = 500


async def run(settings: Settings, health: Health) -> None:
    """Publish for ever, as the active publisher: a producer of our own, one generation of the pipe after the other."""
    async with connect_redis(settings.redis) as redis, leading(settings, "publisher", redis, health):
        pipe = PublisherEnd(redis, settings.name)
        with kafka_errors():
            async with open_topics(settings) as topics, open_producer(settings) as producer:
                await topics.ensure_progress()
                await topics.ensure_history()
                progress = await read_progress(settings, whole=True) or Progress()
                while True:
                    publication = Publication(settings, producer, topics, progress)
                    await _open(pipe, producer, progress)
                    health.up()
                    try:
                        await _publish(pipe, publication)
                    except GenerationLost as lost:
                        log.info("%s; opening a new one", lost)
                    await producer.abort()
                    progress = publication.committed


async def _open(pipe: PublisherEnd, producer: Producer, progress: Progress) -> None:
    """Open a generation at the progress, which is committed once more before.

    A publisher that was replaced while it slept is fenced by Kafka at this commit, and so disturbs nobody.
    """
    await producer.commit(progress)
    await pipe.open(progress)
    metrics.GENERATIONS_OPENED.inc()
    log.info("generation opened after transaction %d", progress.transaction)


async def _publish(pipe: PublisherEnd, publication: Publication) -> None:
    """Publish the entries of the open generation until it is lost."""
    while True:
        entries = await pipe.take(count=_ENTRIES, block_ms=None if publication.committable else _BLOCK_MS)
        for entry in entries:
            await publication.add(decode_events(entry.payload))
        if entries:
            await pipe.trim()
        elif publication.committable:
            await publication.commit()


async def check(settings: Settings, _: Health) -> None:
    """Connect to Redis and Kafka and create the topics of progress and schema history."""
    async with connect_redis(settings.redis) as redis:
        await PublisherEnd(redis, settings.name).probe()
        async with open_lease(settings, "publisher", redis) as lease:
            await lease.holder()
        with kafka_errors():
            async with open_topics(settings) as topics:
                await topics.ensure_progress()
                await topics.ensure_history()

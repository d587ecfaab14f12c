"""The publisher's main path: open → read → encode → produce → commit."""

import logging

from databus import metrics
from databus.connections import connect_redis, kafka_errors
from databus.errors import GenerationLost
from databus.events import decode_events
from databus.pipe import PublisherEnd
from databus.progress import Progress
from databus.runtime import Health
from databus.settings import Settings
from databus_publisher.producer import open_producer
from databus_publisher.progress import read_progress
from databus_publisher.publication import Publication
from databus_publisher.topics import open_topics

log = logging.getLogger("databus.publisher")

_ENTRIES = 16
_BLOCK_MS = 500


async def run(settings: Settings, health: Health) -> None:
    """Publish for ever. Whatever breaks, a new generation begins from the progress in Kafka."""
    async with connect_redis(settings.redis) as redis:
        pipe = PublisherEnd(redis, settings.name)
        while True:
            try:
                await _publish_generation(settings, pipe, health)
            except GenerationLost as lost:
                log.info("%s; opening a new one", lost)


async def _publish_generation(settings: Settings, pipe: PublisherEnd, health: Health) -> None:
    """Open a generation at Kafka's progress and publish its entries until it is lost."""
    with kafka_errors():
        async with open_topics(settings) as topics, open_producer(settings) as producer:
            await topics.ensure_progress()
            progress = await read_progress(settings) or Progress()
            await producer.commit(progress)  # proves that Kafka does not fence us, before anybody is disturbed
            await pipe.open(progress)
            metrics.GENERATIONS_OPENED.inc()
            log.info("generation opened after transaction %d", progress.transaction)
            health.up()
            await _publish(pipe, Publication(settings, producer, topics, progress))


async def _publish(pipe: PublisherEnd, publication: Publication) -> None:
    while True:
        entries = await pipe.take(count=_ENTRIES, block_ms=None if publication.committable else _BLOCK_MS)
        for entry in entries:
            await publication.add(decode_events(entry.payload))
        if entries:
            await pipe.trim(sum(len(entry.payload) for entry in entries))
        elif publication.committable:
            await publication.commit()


async def check(settings: Settings, health: Health) -> None:
    """Connect to Redis and Kafka and create the progress topic."""
    async with connect_redis(settings.redis):
        with kafka_errors():
            async with open_topics(settings) as topics:
                await topics.ensure_progress()
    health.up()

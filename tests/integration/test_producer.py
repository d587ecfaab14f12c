"""The publisher's producer and topics on a real Kafka that creates topics automatically, which is the default."""

import asyncio
import secrets

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from databus_core import names
from databus_core.errors import FatalError, Fenced
from databus_core.progress import Progress
from databus_core.settings import Kafka, Settings
from databus_core.settings.publisher import Compression
from databus_messages.formats.base import Record
from databus_messages.routing.partitions import Partition
from databus_publisher.batches import UNLIMITED, Limit
from databus_publisher.producer import open_producer
from databus_publisher.topics import open_topics
from devstack import Server


@pytest.fixture
def settings(kafka: Server) -> Settings:
    return Settings(name=f"p{secrets.token_hex(4)}", kafka=Kafka(bootstrap_servers=[kafka.url]))


async def test_a_publisher_that_was_replaced_is_fenced(settings: Settings) -> None:
    async with open_topics(settings):
        pass  # creates the topics of the pipeline's state
    with pytest.raises(Fenced):
        async with open_producer(settings) as replaced:
            await replaced.commit(Progress())
            async with open_producer(settings) as successor:
                await successor.commit(Progress())
            await replaced.commit(Progress())


async def test_a_cancelled_commit_raises_nothing_but_the_cancellation(settings: Settings) -> None:
    async with open_topics(settings):
        pass

    async def commit_forever() -> None:
        async with open_producer(settings) as producer:
            started.set()
            while True:
                await producer.commit(Progress())

    started = asyncio.Event()
    for steps in range(0, 24, 3):
        started.clear()
        task = asyncio.create_task(commit_forever())
        await started.wait()
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_new_topic_does_not_delay_the_batches_of_the_others(settings: Settings) -> None:
    async with open_topics(settings) as topics, open_producer(settings) as producer:
        await topics.ensure(new := f"{settings.name}.new")
        for topic in names.schema_topic(settings.name), new:
            producer.set_limit(topic, UNLIMITED)
            await producer.send(Partition(topic, 0), Record(b"key", b"value"))
        async with asyncio.timeout(20):
            await producer.commit(Progress())


async def test_a_progress_topic_without_compaction_is_refused(settings: Settings) -> None:
    topic = names.progress_topic(settings.name)
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 1, 1)])
    await admin.close()
    with pytest.raises(FatalError, match=r"cleanup\.policy=compact"):
        async with open_topics(settings):
            raise AssertionError


async def test_a_progress_topic_that_the_publisher_created_is_accepted_later(settings: Settings) -> None:
    async with open_topics(settings), open_producer(settings) as producer:
        await producer.commit(Progress())
    async with open_topics(settings):
        pass


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
async def test_a_broker_accepts_compressed_batches_and_consumers_read_them(
    settings: Settings, compression: Compression
) -> None:
    topic, records = settings.name, [Record(b"%d" % number, b"value " * 100) for number in range(2000)]
    async with open_topics(settings) as topics, open_producer(settings) as producer:
        await topics.ensure(topic)
        producer.set_limit(topic, Limit(2**20, 2**18), compression)
        for record in records:
            await producer.send(Partition(topic, 0), record)
        await producer.commit(Progress())
    options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    async with AIOKafkaConsumer(topic, bootstrap_servers=settings.kafka.bootstrap_servers, **options) as consumer:
        read = [await consumer.getone() for _ in records]
    assert [(record.key, record.value) for record in read] == [record[:2] for record in records]

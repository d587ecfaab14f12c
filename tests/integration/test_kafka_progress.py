"""Reading a pipeline's progress finds the last committed record, whatever else the topic contains."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from databus_core.errors import KafkaUnavailable
from databus_core.kafka_client import admin
from databus_core.kafka_progress import read_progress
from databus_core.names import progress_topic
from databus_core.progress import Progress, encode_progress
from databus_core.settings import Kafka, Settings
from devstack import Server


@pytest.fixture
def settings(kafka: Server) -> Settings:
    return Settings(name=f"p{secrets.token_hex(4)}", kafka={"bootstrap_servers": [kafka.url]})


@pytest.fixture
async def producer(settings: Settings, kafka: Server) -> AsyncIterator[AIOKafkaProducer]:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await admin.start()
    await admin.create_topics([NewTopic(progress_topic(settings.name), 1, 1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=kafka.url, transactional_id=settings.name) as producer:
        yield producer


async def send(producer: AIOKafkaProducer, settings: Settings, transaction: int) -> None:
    record = encode_progress(Progress(transaction=transaction))
    await producer.send_and_wait(progress_topic(settings.name), record, key=b"key", partition=0)


async def test_a_pipeline_without_a_topic_has_no_progress_and_gets_no_topic(settings: Settings) -> None:
    assert await read_progress(settings) is None
    # With `to_end` the topic must exist: if Kafka does not know it yet, that must not look like a first start.
    with pytest.raises(KafkaUnavailable):
        await read_progress(settings, to_end=True)
    assert await read_progress(settings) is None


async def test_the_last_committed_progress_is_found_although_aborted_ones_follow(
    settings: Settings, producer: AIOKafkaProducer
) -> None:
    assert await read_progress(settings) is None
    for number in range(1, 4):
        async with producer.transaction():
            await send(producer, settings, number)
    for number in range(40):
        await producer.begin_transaction()
        await send(producer, settings, 100 + number)
        await producer.abort_transaction()
    for to_end in (False, True):
        assert await read_progress(settings, to_end=to_end) == Progress(transaction=3)


async def test_an_open_transaction_is_waited_for_only_when_reading_to_the_end(
    settings: Settings, producer: AIOKafkaProducer
) -> None:
    async with producer.transaction():
        await send(producer, settings, 1)
    await producer.begin_transaction()
    await send(producer, settings, 2)
    assert await read_progress(settings) == Progress(transaction=1)
    reading = asyncio.create_task(read_progress(settings, to_end=True))
    await asyncio.wait([reading], timeout=0.5)
    assert not reading.done()
    await producer.commit_transaction()
    assert await reading == Progress(transaction=2)


async def test_a_cancellation_while_a_client_stops_is_not_lost(kafka: Server) -> None:
    async def disconnect_and_wait() -> None:
        async with admin(Kafka(bootstrap_servers=[kafka.url])):
            asyncio.get_running_loop().call_soon(work.cancel)
        await asyncio.Event().wait()

    work = asyncio.create_task(disconnect_and_wait())
    await asyncio.wait([work], timeout=10)
    assert work.cancelled()

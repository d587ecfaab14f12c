"""A Kafka producer that is stopped leaves nothing behind, even if it was fenced or Kafka is away."""

import asyncio
import gc
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import aiokafka
import pytest
from aiokafka.errors import KafkaError

from databus_core.kafka_stop import stop_producer
from databus_core.logs import report_background_error
from devstack import Stack
from faults.proxy import Proxy

Make = Callable[..., Awaitable[aiokafka.AIOKafkaProducer]]


@pytest.fixture
async def proxy(own: Stack) -> AsyncIterator[Proxy]:
    """The network between the producer and Kafka."""
    await asyncio.to_thread(own.start, "kafka")
    *_, behind, front = own.ports("kafka")
    proxy = Proxy(behind, front)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
def make(proxy: Proxy) -> Make:
    identity = secrets.token_hex(4)

    async def start(*, transactional: bool = True) -> aiokafka.AIOKafkaProducer:
        kafka = aiokafka.AIOKafkaProducer(
            bootstrap_servers=f"127.0.0.1:{proxy.port}",
            enable_idempotence=True,
            transactional_id=identity if transactional else None,
        )
        await kafka.start()
        return kafka

    return start


@asynccontextmanager
async def nothing_left(caplog: pytest.LogCaptureFixture) -> AsyncIterator[None]:
    """Fail if a task of aiokafka's is left, or an error that was never retrieved."""
    loop, library = asyncio.get_running_loop(), logging.getLogger("aiokafka")
    loop.set_exception_handler(report_background_error)
    library.setLevel(logging.CRITICAL)  # pytest keeps log records, which would keep futures and errors alive
    try:
        yield
        tasks = [task.get_coro() for task in asyncio.all_tasks()]
        assert [coro for coro in tasks if "aiokafka" in coro.cr_code.co_filename] == []
        gc.collect()
        assert [record.getMessage() for record in caplog.records] == []
    finally:
        library.setLevel(logging.NOTSET)
        loop.set_exception_handler(None)


async def send(kafka: aiokafka.AIOKafkaProducer, topic: str, batches: int) -> None:
    """Send batches; their delivery may fail."""
    for _ in range(batches):
        batch = kafka.create_batch()
        batch.append(key=None, value=b"x", timestamp=None)
        delivery = await kafka.send_batch(batch, topic, partition=0)
        delivery.add_done_callback(lambda done: done.cancelled() or done.exception())


@pytest.mark.parametrize("batches", [1, 3])
async def test_a_fenced_producer_leaves_no_error_behind(
    make: Make, batches: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog):
        topic = f"t{secrets.token_hex(4)}"
        fenced = await make()
        await fenced.begin_transaction()
        await send(fenced, topic, 1)
        await fenced.commit_transaction()
        successor = await make()
        await fenced.begin_transaction()
        with suppress(KafkaError):
            await send(fenced, topic, batches)
        await asyncio.wait({fenced._sender.sender_task}, timeout=30)
        await stop_producer(fenced, 5)
        await stop_producer(successor, 5)
        del fenced, successor


@pytest.mark.parametrize("network", ["gone", "silent"])
@pytest.mark.parametrize("transactional", [True, False], ids=["transactional", "idempotent"])
async def test_a_producer_without_a_broker_leaves_no_task_behind(
    make: Make, proxy: Proxy, transactional: bool, network: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog):
        topic = f"t{secrets.token_hex(4)}"
        kafka = await make(transactional=transactional)
        if transactional:
            await kafka.begin_transaction()
        await send(kafka, topic, 1)
        await kafka.flush()
        if network == "gone":
            await proxy.stop()
        else:
            proxy.half_open()
        await send(kafka, topic, 1)
        await stop_producer(kafka, 0.5)
        del kafka


async def test_a_producer_whose_stop_is_cancelled_leaves_no_task_behind(
    make: Make, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    async with nothing_left(caplog):
        topic = f"t{secrets.token_hex(4)}"
        kafka = await make()
        await kafka.begin_transaction()
        await send(kafka, topic, 1)
        await kafka.flush()
        proxy.half_open()
        await send(kafka, topic, 1)
        stopping = asyncio.create_task(stop_producer(kafka, 60))
        del kafka
        await asyncio.sleep(0)
        stopping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopping
        del stopping

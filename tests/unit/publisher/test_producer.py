"""While a transaction is being committed, the records of the next one are collected; none is sent before the end."""

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from databus_core.errors import KafkaUnavailable
from databus_core.progress import Progress
from databus_messages.formats.base import Record
from databus_messages.routing.partitions import Partition
from databus_publisher.batches import Limit
from databus_publisher.producer import ExactlyOnce
from unit.publisher.test_batches import Kafka

T0 = Partition("t", 0)


class TransactionalKafka(Kafka):
    """Delivers every batch at once. A commit ends when the test says so."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.asked = asyncio.Event()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def begin_transaction(self) -> None:
        self.calls.append("begin")

    async def commit_transaction(self) -> None:
        self.calls.append("commit")
        self.asked.set()
        await self.ended
        self.calls.append("committed")

    async def abort_transaction(self) -> None:
        self.calls.append("abort")

    async def send_batch(self, batch: object, topic: str, **_: Any) -> "asyncio.Future[None]":
        self.calls.append(topic)
        delivery: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        delivery.set_result(None)
        return delivery


async def committing() -> tuple[Any, ExactlyOnce]:
    """Return a producer whose first transaction is being committed."""
    kafka: Any = TransactionalKafka()
    producer = ExactlyOnce(kafka, "shop")
    producer.set_limit("t", Limit(1000))
    await producer.send(T0, Record(b"1", b"value"))
    await producer.start_commit(Progress())
    await kafka.asked.wait()
    return kafka, producer


async def test_a_batch_of_the_next_transaction_waits_until_the_commit_has_ended() -> None:
    kafka, producer = await committing()
    first = list(kafka.calls)
    assert await producer.send(T0, Record(b"2", b"x" * 600))
    sending = asyncio.create_task(producer.send(T0, Record(b"3", b"x" * 600)))
    await asyncio.wait({sending}, timeout=0.02)
    assert kafka.calls == first
    kafka.ended.set_result(None)
    assert await sending
    assert kafka.calls == [*first, "committed", "begin", "t"]


async def test_an_abort_waits_for_the_commit_and_discards_only_what_came_after_it() -> None:
    kafka, producer = await committing()
    assert await producer.send(T0, Record(b"2", b"value"))
    aborting = asyncio.create_task(producer.abort())
    await asyncio.wait({aborting}, timeout=0.02)
    assert not aborting.done()
    kafka.ended.set_result(None)
    await aborting
    await producer.commit(Progress())
    assert kafka.calls.count("t") == 1
    assert "abort" not in kafka.calls


@pytest.mark.parametrize("step", ["finish_commit", "flush", "abort"])
async def test_after_a_commit_that_failed_nothing_goes_on(step: str) -> None:
    kafka, producer = await committing()
    assert await producer.send(T0, Record(b"2", b"value"))
    kafka.ended.set_exception(KafkaError("away"))
    for _ in range(2):
        with pytest.raises((KafkaError, KafkaUnavailable)):
            await getattr(producer, step)()
    assert kafka.calls.count("begin") == 1

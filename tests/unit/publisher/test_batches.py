"""Records are collected in batches; after a batch that was not delivered, nothing can be committed."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import IllegalOperation, ProducerFenced
from aiokafka.record.default_records import DefaultRecordBatch

from databus_core.errors import KafkaUnavailable
from databus_messages.formats.base import Record
from databus_messages.routing.partitions import Partition
from databus_publisher.batches import Batches, Limit
from databus_publisher.record_batch import RecordBatch

T0 = Partition("t", 0)


class Kafka:
    """What the fake producers have in common: a client that tracks topics."""

    client = SimpleNamespace(add_topic=lambda topic: None)


class StalledKafka(Kafka):
    """Lets every batch wait, like aiokafka while an earlier batch of the partition is still in its queue."""

    def __init__(self) -> None:
        self.called = asyncio.Event()

    async def send_batch(self, *_: Any, **__: Any) -> None:
        self.called.set()
        await asyncio.Event().wait()


class AcceptingKafka(Kafka):
    """Accepts every batch, and never confirms it."""

    def __init__(self) -> None:
        self.accepted: list[RecordBatch] = []

    async def send_batch(self, batch: RecordBatch, *_: Any, **__: Any) -> "asyncio.Future[None]":
        self.accepted.append(batch)
        return asyncio.Future()


class CancellingKafka(Kafka):
    """Accepts every batch, and cancels its delivery."""

    async def send_batch(self, *_: Any, **__: Any) -> "asyncio.Future[None]":
        delivery: asyncio.Future[None] = asyncio.Future()
        delivery.cancel()
        return delivery


class FencedKafka(Kafka):
    """Accepts a first batch, which then fails, and refuses the second batch before that failure is reported."""

    def __init__(self) -> None:
        self._first: asyncio.Future[None] | None = None

    async def send_batch(self, *_: Any, **__: Any) -> "asyncio.Future[None]":
        if self._first is None:
            self._first = asyncio.Future()
            return self._first
        self._first.set_exception(ProducerFenced())
        raise IllegalOperation("Can't send messages while not in transaction")


async def test_a_refused_batch_raises_the_error_of_the_batch_that_failed_before_it() -> None:
    kafka: Any = FencedKafka()
    batches = Batches(kafka, transactional=True)
    batches.set_limit("t", Limit(1000))
    with pytest.raises(ProducerFenced):
        for _ in range(3):
            await batches.send(T0, Record(b"key", b"x" * 800))
    with pytest.raises(ProducerFenced):
        await batches.flush()


async def test_a_cancelled_delivery_is_a_failure() -> None:
    kafka: Any = CancellingKafka()
    batches = Batches(kafka, transactional=True)
    batches.set_limit("t", Limit(1000))
    await batches.send(T0, Record(b"key", b"value"))
    with pytest.raises(KafkaUnavailable, match="records for t were not delivered: cancelled"):
        await batches.flush()


async def test_a_batch_stays_open_after_a_record_that_is_too_large() -> None:
    kafka: Any = AcceptingKafka()
    batches = Batches(kafka, transactional=False)
    batches.set_limit("t", Limit(1000))
    assert await batches.send(T0, Record(b"1", b"small"))
    assert not await batches.send(T0, Record(b"2", b"x" * 1000))
    assert not await batches.send(T0, Record(b"3", b"x" * 990))
    assert await batches.send(T0, Record(b"4", b"small"))
    assert kafka.accepted == []
    assert await batches.send(T0, Record(b"5", b"x" * 920))
    (batch,) = kafka.accepted
    assert [record.key for record in DefaultRecordBatch(bytes(batch._build()))] == [b"1", b"4"]


async def test_an_empty_batch_is_not_sent_and_accepts_no_record_that_is_too_large() -> None:
    kafka: Any = AcceptingKafka()
    batches = Batches(kafka, transactional=False)
    assert batches.open_batch(T0) is None
    batches.set_limit("t", Limit(100))
    assert batches.open_batch(T0) is batches.open_batch(T0)
    assert not await batches.make_room(T0)
    assert not await batches.send(T0, Record(b"key", b"x" * 90))
    await batches.flush()
    assert kafka.accepted == []


async def test_a_batch_is_sent_to_make_room_once_it_is_half_full() -> None:
    kafka: Any = AcceptingKafka()
    batches = Batches(kafka, transactional=False)
    batches.set_limit("t", Limit(1000))
    assert await batches.send(T0, Record(b"1", b"x" * 300))
    assert not await batches.make_room(T0)
    assert await batches.send(T0, Record(b"2", b"x" * 200))
    assert await batches.make_room(T0)
    (batch,) = kafka.accepted
    assert [record.key for record in DefaultRecordBatch(bytes(batch._build()))] == [b"1", b"2"]


async def test_every_flush_fails_after_a_batch_that_was_not_sent() -> None:
    kafka: Any = StalledKafka()
    batches = Batches(kafka, transactional=False)
    batches.set_limit("t", Limit(2**20))
    assert await batches.send(T0, Record(b"key", b"value"))
    sending = asyncio.create_task(batches.flush())
    await kafka.called.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    with pytest.raises(KafkaUnavailable, match="records for t were not sent"):
        await batches.flush()

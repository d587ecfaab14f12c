"""Records that wait in batches: none is forgotten without the commit being refused."""

import asyncio
from typing import Any

import pytest

from databus.errors import KafkaUnavailable
from databus_publisher.batches import Batches, Limit


class StalledKafka:
    """Takes no batch, as aiokafka does while the partition's previous one is on its way."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def send_batch(self, *_: Any, **__: Any) -> None:
        self.asked.set()
        await asyncio.Event().wait()


async def test_a_batch_that_was_not_handed_over_forbids_the_commit() -> None:
    kafka: Any = StalledKafka()
    batches = Batches(kafka, transactional=False)
    lane = batches.lane("t", 0, Limit(2**20))
    assert await batches.send(lane, b"key", b"value")
    sending = asyncio.create_task(batches.flush())
    await kafka.asked.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    with pytest.raises(KafkaUnavailable, match="records for t were not sent"):
        await batches.flush()

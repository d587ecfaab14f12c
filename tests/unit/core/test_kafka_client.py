"""Clients of Kafka are started and stopped so that no connection is left."""

import asyncio

import pytest

from databus_core import kafka_client
from databus_core.settings import Kafka


async def test_a_start_that_is_cancelled_may_close_its_first_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    is_connected, steps = asyncio.Event(), list[str]()

    class Client:
        def __init__(self, **_: object) -> None: ...

        async def start(self) -> None:
            is_connected.set()
            await asyncio.sleep(0.01)  # it reads which brokers there are
            steps.append("closed its first connection")

        async def close(self) -> None:
            steps.append("stopped")

    async def use() -> None:
        async with kafka_client.admin(Kafka(bootstrap_servers=["kafka:9092"])):
            steps.append("used")

    monkeypatch.setattr(kafka_client, "AIOKafkaAdminClient", Client)
    task = asyncio.create_task(use())
    await is_connected.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["closed its first connection", "stopped"]

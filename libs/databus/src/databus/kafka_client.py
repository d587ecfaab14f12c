"""Clients of aiokafka that are stopped whatever happens, and let nobody's cancellation get lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient

from databus.errors import KafkaUnavailable

#: a topic of ours is read in less; a partition without a leader would be waited for for ever
_READ_SECONDS = 120


@asynccontextmanager
async def reading_in_time(topic: str) -> AsyncIterator[None]:
    """Give up reading a topic that does not come to its end. Raises KafkaUnavailable."""
    try:
        async with asyncio.timeout(_READ_SECONDS):
            yield
    except TimeoutError as error:
        raise KafkaUnavailable(f"Kafka did not give all of topic {topic} within {_READ_SECONDS} s") from error


@asynccontextmanager
async def running(client: Any) -> AsyncIterator[Any]:
    """Start a consumer or an admin client, and stop it at the end of the block."""
    try:
        await client.start()
        yield client
    finally:
        # While it stops, aiokafka takes our cancellation for that of its own tasks, and raises theirs, which would hide
        # the error that leaves the block.
        with suppress(asyncio.CancelledError):
            await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())
        task = asyncio.current_task()
        if task and task.cancelling():
            raise asyncio.CancelledError

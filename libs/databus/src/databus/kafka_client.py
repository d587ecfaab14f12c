"""Clients of aiokafka that are stopped whatever happens, and let nobody's cancellation get lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, TypeAlias

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from databus.errors import KafkaUnavailable
from databus.settings import Settings

Isolation: TypeAlias = Literal["read_committed", "read_uncommitted"]

#: for the next records of a topic of ours; a partition without a leader would be waited for for ever
_READ_SECONDS = 60


def consumer(settings: Settings, isolation: Isolation) -> AIOKafkaConsumer:
    """Make a consumer of topics of our own; it is not started."""
    servers = settings.kafka.bootstrap_servers
    return AIOKafkaConsumer(bootstrap_servers=servers, isolation_level=isolation, enable_auto_commit=False)


async def records(
    reading: AIOKafkaConsumer, partition: TopicPartition, begin: int, end: int
) -> AsyncIterator[ConsumerRecord[Any, Any]]:
    """Give the records between two offsets of an assigned partition. Raises KafkaUnavailable if they do not come."""
    if begin == end:
        return
    reading.seek(partition, begin)
    while True:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                while not (found := await reading.getmany(timeout_ms=200)) and await reading.position(partition) < end:
                    pass
        except TimeoutError as error:
            raise KafkaUnavailable(f"Kafka gave nothing of {partition.topic} for {_READ_SECONDS} s") from error
        for record in found.get(partition, ()):
            if record.offset < end:
                yield record
        if await reading.position(partition) >= end:
            return


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

"""Follows the requests of clients, for backfills and skips, while a generation is read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from databus_core import names
from databus_core.errors import KafkaUnavailable, TableStatesCorrupt
from databus_core.kafka_compacted import Follower, following
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.settings import Settings
from databus_core.table_states import is_request
from databus_reader.backfill.backfills import Backfills

log = get_logger(__name__)

_RETRY_SECONDS = 2.0


@asynccontextmanager
async def taking_requests(settings: Settings, offset: int, backfills: Backfills) -> AsyncIterator[None]:
    """During the block, hand new requests to the backfills. `offset`: up to where the topic was read.

    Raises KafkaUnavailable, and FatalError if Kafka refuses access.
    """
    async with following(settings.kafka, names.table_states_topic(settings.name), offset) as topic:
        task = asyncio.create_task(_take(topic, backfills))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _take(topic: Follower, backfills: Backfills) -> None:
    """Hand over requests, without end. Changes flow on if Kafka does not answer, or if a request cannot be read."""
    while True:
        try:
            records = await topic.take()
        except KafkaUnavailable as error:
            log.warning(LogEvent.REQUESTS_NOT_READ, f"requests of backfills cannot be read now: {error}")
            await asyncio.sleep(_RETRY_SECONDS)
            continue
        for key, value in records:
            try:
                if is_request(key):
                    backfills.request(key, value)
            except (TableStatesCorrupt, msgspec.DecodeError) as error:
                log.warning(LogEvent.REQUESTS_NOT_READ, f"a record of the table states is ignored: {error}")

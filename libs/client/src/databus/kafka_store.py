"""Keeps a bookmark in Kafka, as the offsets of a consumer group, so that Kafka's tools show how far behind it is.

The offsets of the partitions are those of the bookmark; its rest is the metadata of the progress topic's offset. Kafka
stores the offsets of one request together.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from aiokafka import OffsetAndMetadata, TopicPartition
from aiokafka.errors import KafkaError, OffsetMetadataTooLargeError

from databus.bookmark import Bookmark
from databus_core import kafka_client, names
from databus_core.errors import InvalidSettings, KafkaUnavailable
from databus_core.kafka_ends import by_topic
from databus_core.settings import Settings


class KafkaStore:
    """Keeps a bookmark as a consumer group. See `Databus.kafka_store`."""

    def __init__(self, settings: Callable[[], Awaitable[Settings]], group: str) -> None:
        self._settings = settings
        self._group = group
        self._connections = AsyncExitStack()
        self._consumer: Any = None

    async def load(self) -> Bookmark | None:
        """Read the group's offsets. Raises InvalidSettings if the group is not ours, KafkaUnavailable."""
        settings = await self._settings()
        async with kafka_client.admin(settings.kafka) as admin:
            found: dict[TopicPartition, OffsetAndMetadata] = await admin.list_consumer_group_offsets(self._group)
        if not found:
            return None
        rest = found.pop(_rest_of(settings.name), None)
        if rest is None:
            text = f"consumer group {self._group} was not made by this client for pipeline {settings.name}"
            raise InvalidSettings(f"{text}: choose another name")
        offsets = by_topic({each: committed.offset for each, committed in found.items()})
        return msgspec.structs.replace(Bookmark.parse(rest.metadata), offsets=offsets)

    async def save(self, bookmark: Bookmark) -> None:
        """Commit the group's offsets. Raises KafkaUnavailable, and InvalidSettings if Kafka has not the space."""
        offsets = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "")
            for topic, partitions in bookmark.offsets.items()
            for partition, offset in partitions.items()
            if offset  # the topic of dead letters exists only if there was one
        }
        rest = OffsetAndMetadata(0, str(msgspec.structs.replace(bookmark, offsets={})))
        try:
            await self._commit(offsets | {_rest_of(bookmark.pipeline): rest})
        except OffsetMetadataTooLargeError as error:
            raise InvalidSettings(
                f"the bookmark does not fit into consumer group {self._group}, because the snapshot is a chunked dump "
                "with many parts: use another store, or raise offset.metadata.max.bytes of Kafka's brokers"
            ) from error
        except KafkaError as error:
            raise KafkaUnavailable(f"the offsets of consumer group {self._group} are not saved: {error}") from error

    async def _commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if self._consumer is None:
            consumer = kafka_client.consumer((await self._settings()).kafka, group=self._group)
            self._consumer = await self._connections.enter_async_context(consumer)
        if self._consumer.assignment() != offsets.keys():  # it commits only those that it reads
            self._consumer.assign(list(offsets))
            self._consumer.pause(*offsets)
        await self._consumer.commit(offsets)

    async def close(self) -> None:
        """Close the connection."""
        await self._connections.aclose()
        self._consumer = None


def _rest_of(pipeline: str) -> TopicPartition:
    return TopicPartition(names.progress_topic(pipeline), 0)

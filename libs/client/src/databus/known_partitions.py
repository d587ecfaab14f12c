"""The partitions that may have changes. All topics of Kafka are listed only if there may be new ones.

Everything that a progress covers must be read with it, or changes of a new topic would come late. The publisher counts
in the progress when it begins to use topics, so a list is complete as long as this count stays the same.
"""

import asyncio
import time
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, TopicPartition

from databus_core.change_topics import ChangeTopics
from databus_core.kafka_ends import stable_ends
from databus_core.progress import Progress

#: how old a list may become, because topics can be deleted; and how long ends are waited for before topics are listed
_SECONDS = 5.0


class KnownPartitions:
    """The partitions of the topics that are read, and their ends."""

    def __init__(self, topics: ChangeTopics, transaction_timeout: float) -> None:
        """`transaction_timeout` is the publisher's, in seconds."""
        self._topics = topics
        self._timeout = transaction_timeout
        self._listed: list[TopicPartition] = []
        self._listed_at, self._topics_opened = 0.0, -1

    async def ends(
        self, progress: Progress, written: AIOKafkaConsumer, committed: AIOKafkaConsumer
    ) -> dict[TopicPartition, int]:
        """Read the ends of all partitions that may have changes up to a progress; see `stable_ends`."""
        is_new = progress.topics_opened != self._topics_opened or time.monotonic() > self._listed_at + _SECONDS
        if not is_new and progress.topics_opened is not None:
            with suppress(TimeoutError):  # a topic was deleted, or a long transaction is open
                async with asyncio.timeout(_SECONDS):
                    return await stable_ends(self._timeout, written, committed, self._listed)
        # The count is that of the progress, not a later one: what is opened meanwhile is listed twice at worst.
        self._topics_opened = -1 if progress.topics_opened is None else progress.topics_opened
        self._listed_at = time.monotonic()
        self._listed = await self._topics.partitions()
        return await stable_ends(self._timeout, written, committed, self._listed)

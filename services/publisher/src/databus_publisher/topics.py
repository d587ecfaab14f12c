"""Topics in Kafka: create missing ones, and look up the limits of existing ones."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient

from databus_core import kafka_client, names
from databus_core.errors import FatalError, RecordTooLarge, TopicRefused, WriteDenied
from databus_core.kafka_rights import may_write
from databus_core.kafka_topics import create_topic, max_batch_bytes, partition_counts
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.pipeline_state import ensure_state_topics
from databus_core.settings import Settings
from databus_publisher.batches import BATCH_BYTES, Limit

log = get_logger(__name__)

#: max.message.bytes of the dead-letter topic; it overrides the broker's. The only limit for a request is the broker's
#: socket.request.max.bytes, by default 100 MiB.
_DEAD_LETTER_BYTES = 32 * 2**20


class Topics:
    """Creates and inspects topics. Remembers their limits even if a new producer is opened."""

    def __init__(self, settings: Settings, admin: AIOKafkaAdminClient) -> None:
        self._settings = settings
        self._admin = admin
        self._existing: set[str] | None = None
        self._limits: dict[str, Limit] = {}
        #: topic → bytes that a batch could have when `limit` last asked Kafka
        self._max_bytes: dict[str, int] = {}

    async def ensure_dead_letters(self) -> str:
        """Create the pipeline's dead-letter topic unless it exists, and return its name."""
        topic = names.dead_letter_topic(self._settings.name)
        if not await self._exists(topic):
            await self._create(topic, 1, {"cleanup.policy": "compact", "max.message.bytes": str(_DEAD_LETTER_BYTES)})
        return topic

    async def ensure(self, topic: str, partitions: int | None = None) -> None:
        """Create a topic for changes, or a format's own topic, unless it exists; an existing topic is not altered.

        `partitions` defaults to `publisher.partitions`, or else to 1. An account without CREATE rights can still write
        to existing topics. Raises TopicRefused, also if it may not write to the topic: the first record would fail, and
        with it the Kafka transaction.
        """
        if not await self._exists(topic):
            publisher = self._settings.publisher
            await self._create(topic, partitions or publisher.partitions or 1, publisher.topic_settings)
        if not await may_write(self._admin, topic):
            raise WriteDenied(f"Kafka denies the account WRITE on topic {topic}; grant it")

    async def limit(self, topic: str) -> Limit:
        """Look up the limit of an existing topic."""
        if topic not in self._limits:
            largest = self._max_bytes[topic] = await max_batch_bytes(self._admin, topic)
            self._limits[topic] = Limit(largest, min(largest, BATCH_BYTES))
        return self._limits[topic]

    async def raised_limit(self, topic: str) -> Limit | None:
        """Look up the limit again, because it may have been raised; None unless the topic accepts more than before."""
        if await max_batch_bytes(self._admin, topic) <= self._max_bytes.get(topic, 0):
            return None
        self._limits.pop(topic, None)
        return await self.limit(topic)

    async def lower_limit(self, refused: RecordTooLarge) -> None:
        """Lower a topic's limit after Kafka rejected a batch, because the limit was changed or could not be looked up.

        Raises FatalError for the topics of progress and schema history, whose records cannot be left out.
        """
        old = self._limits.pop(refused.topic, None)
        if old is None:
            raise FatalError(str(refused)) from refused
        new = await self.limit(refused.topic)
        if new.record >= refused.size:
            new = Limit(
                refused.size - 1, min(old.batch, refused.size - 1 if refused.records == 1 else refused.size // 2)
            )
        self._limits[refused.topic] = new
        text = f"{refused}; from now on at most {new.record} bytes are sent to this topic"
        log.warning(LogEvent.RECORD_LIMIT_LOWERED, text, topic=refused.topic, limit=new.record)

    async def _exists(self, topic: str) -> bool:
        if self._existing is None:
            self._existing = set(await partition_counts(self._admin))
        return topic in self._existing

    async def _create(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        try:
            await create_topic(self._admin, topic, partitions, config, self._settings.publisher.replication_factor)
        except TopicRefused:
            self._existing = None  # an operator may create the topic: look again before the next attempt
            raise
        if self._existing is not None:
            self._existing.add(topic)


@asynccontextmanager
async def open_topics(settings: Settings) -> AsyncIterator[Topics]:
    """Connect to Kafka's admin API, and create or verify the topics of the pipeline's state."""
    async with kafka_client.admin(settings.kafka) as admin:
        await ensure_state_topics(admin, settings)
        yield Topics(settings, admin)

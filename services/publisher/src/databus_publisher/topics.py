"""Create the topics that are missing, and know what they take."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError, for_code

from databus import names
from databus.errors import FatalError, RecordTooLarge
from databus.kafka_client import running
from databus.kafka_topics import max_batch_bytes, partition_counts, topic_settings
from databus.settings import Settings
from databus_publisher.batches import BATCH_BYTES, Limit

log = logging.getLogger("databus.publisher")

#: A segment that is written to is never compacted, and all of it is read at a start.
_PROGRESS_SEGMENT = 8 * 2**20
#: A topic's own limit counts, not the broker's; requests of more than 100 MiB are refused (socket.request.max.bytes).
_DEAD_LETTER_BYTES = 32 * 2**20


class Topics:
    """Makes sure of topics; what it learnt of one holds as long as the publisher runs."""

    def __init__(self, settings: Settings, admin: AIOKafkaAdminClient) -> None:
        self._settings = settings
        self._admin = admin
        self._existing: set[str] | None = None
        self._limits: dict[str, Limit] = {}
        self._told: dict[str, int] = {}

    async def ensure_progress(self) -> None:
        """Create the pipeline's progress topic, or verify it: one partition, compacted.

        Raises FatalError for another one: a topic that forgets would lose the pipeline's progress.
        """
        await self._ensure_compacted(names.progress_topic(self._settings.name))

    async def ensure_history(self) -> None:
        """Create the pipeline's topic of the schema history, or verify it, as that of the progress."""
        await self._ensure_compacted(names.schema_topic(self._settings.name))

    async def _ensure_compacted(self, topic: str) -> None:
        partitions = (await partition_counts(self._admin)).get(topic)
        if partitions is None:
            config = {"cleanup.policy": "compact", "segment.bytes": str(_PROGRESS_SEGMENT)}
            await self._create(topic, 1, config)
            return
        policy = (await topic_settings(self._admin, topic))["cleanup.policy"]
        if policy != "compact" or partitions != 1:
            raise FatalError(
                f"topic {topic} must have 1 partition and cleanup.policy=compact, it has {partitions} and {policy}: "
                "alter it, or delete it if this pipeline may start afresh"
            )

    async def ensure_dead_letters(self) -> str:
        """Create the pipeline's dead-letter topic unless it exists, and give its name."""
        topic = names.dead_letter_topic(self._settings.name)
        if not await self._exists(topic):
            await self._create(topic, 1, {"cleanup.policy": "compact", "max.message.bytes": str(_DEAD_LETTER_BYTES)})
        return topic

    async def ensure(self, topic: str, partitions: int | None = None) -> None:
        """Create a topic of changes unless it exists, by default as configured; an existing one is left as it is.

        Who may not create topics may still write to them.
        """
        if not await self._exists(topic):
            publisher = self._settings.publisher
            await self._create(topic, partitions or publisher.partitions or 1, publisher.topic_settings)

    async def limit(self, topic: str) -> Limit:
        """Tell what an existing topic takes."""
        if topic not in self._limits:
            largest = self._told[topic] = await max_batch_bytes(self._admin, topic)
            self._limits[topic] = Limit(largest, min(largest, BATCH_BYTES))
        return self._limits[topic]

    async def asked_again(self, topic: str) -> Limit:
        """Tell, before a record is left out, what the topic takes by now."""
        if await max_batch_bytes(self._admin, topic) > self._told[topic]:
            del self._limits[topic]
        return await self.limit(topic)

    async def refused(self, refused: RecordTooLarge) -> None:
        """Learn from a refusal: the topic's limit was changed, or we could not ask for it.

        Raises FatalError if nothing smaller can be sent.
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
        log.warning("%s; from now on it gets at most %d", refused, new.record)

    async def _exists(self, topic: str) -> bool:
        if self._existing is None:
            self._existing = set(await partition_counts(self._admin))
        return topic in self._existing

    async def _create(self, topic: str, partitions: int, config: Mapping[str, str]) -> None:
        factor = self._settings.publisher.replication_factor
        # aiokafka lets -1, the broker's default, pass only beside an explicit (here: empty) assignment.
        wanted = NewTopic(topic, partitions, factor, {} if factor == -1 else None, dict(config))
        answer = await self._admin.create_topics([wanted])
        for name, code, *details in answer.topic_errors:
            error = for_code(code)
            if error.retriable:
                raise error(f"while topic {name} was created")
            if code and error is not TopicAlreadyExistsError:
                raise FatalError(f"Kafka does not create topic {name}: {details[0] if details else error.__name__}")
        if self._existing is not None:
            self._existing.add(topic)


@asynccontextmanager
async def open_topics(settings: Settings) -> AsyncIterator[Topics]:
    """Connect to Kafka as an administrator of topics."""
    async with running(AIOKafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)) as admin:
        yield Topics(settings, admin)

"""Create the topics that are missing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import TopicAlreadyExistsError, for_code

from databus import names
from databus.errors import FatalError
from databus.kafka_client import running
from databus.settings import Settings

#: A segment that is written to is never compacted, and all of it is read at a start.
_PROGRESS_SEGMENT = 8 * 2**20


class Topics:
    """Knows which topics exist and how many partitions they have."""

    def __init__(self, settings: Settings, admin: AIOKafkaAdminClient) -> None:
        self._settings = settings
        self._admin = admin

    async def ensure_progress(self) -> None:
        """Create the pipeline's progress topic, or verify it: one partition, compacted.

        Raises FatalError for another one: a topic that forgets would lose the pipeline's progress.
        """
        await self._ensure_compacted(names.progress_topic(self._settings.name))

    async def ensure_history(self) -> None:
        """Create the pipeline's topic of the schema history, or verify it, as that of the progress."""
        await self._ensure_compacted(names.schema_topic(self._settings.name))

    async def _ensure_compacted(self, topic: str) -> None:
        partitions = (await self._existing()).get(topic)
        if partitions is None:
            config = {"cleanup.policy": "compact", "segment.bytes": str(_PROGRESS_SEGMENT)}
            await self._create(topic, 1, config)
            return
        policy = await self._cleanup_policy(topic)
        if policy != "compact" or partitions != 1:
            raise FatalError(
                f"topic {topic} must have 1 partition and cleanup.policy=compact, it has {partitions} and {policy}: "
                "alter it, or delete it if this pipeline may start afresh"
            )

    async def ensure(self, topic: str) -> None:
        """Create a topic of changes unless it exists; an existing one is left as it is.

        Who may not create topics may still write to them.
        """
        if topic not in await self._existing():
            await self._create(topic, self._settings.publisher.partitions, {})

    async def _create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        factor = self._settings.publisher.replication_factor
        # aiokafka lets -1, the broker's default, pass only beside an explicit (here: empty) assignment.
        wanted = NewTopic(topic, partitions, factor, {} if factor == -1 else None, config)
        answer = await self._admin.create_topics([wanted])
        for name, code, *details in answer.topic_errors:
            error = for_code(code)
            if error.retriable:
                raise error(f"while topic {name} was created")
            if code and error is not TopicAlreadyExistsError:
                raise FatalError(f"Kafka does not create topic {name}: {details[0] if details else error.__name__}")

    async def _cleanup_policy(self, topic: str) -> str:
        (answer,) = await self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        code, _, _, _, entries = answer.resources[0]
        if code:
            raise for_code(code)(f"configuration of topic {topic}")
        return str(next(value for name, value, *_ in entries if name == "cleanup.policy"))

    async def _existing(self) -> dict[str, int]:
        """List topics and their partitions; asking for one by its name would make many brokers create it."""
        return {topic["topic"]: len(topic["partitions"]) for topic in await self._admin.describe_topics()}


@asynccontextmanager
async def open_topics(settings: Settings) -> AsyncIterator[Topics]:
    """Connect to Kafka as an administrator of topics."""
    async with running(AIOKafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)) as admin:
        yield Topics(settings, admin)

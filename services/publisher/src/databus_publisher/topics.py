"""Create the topics that are missing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError, for_code

from databus import names
from databus.errors import FatalError
from databus.settings import Settings


class Topics:
    """Knows which topics exist and how many partitions they have."""

    def __init__(self, settings: Settings, admin: AIOKafkaAdminClient) -> None:
        self._settings = settings
        self._admin = admin

    async def ensure_progress(self) -> None:
        """Create the pipeline's progress topic: one partition, compacted."""
        config = {"cleanup.policy": "compact"}
        await self._create(names.progress_topic(self._settings.name), 1, config)

    async def ensure(self, topic: str) -> None:
        """Create a topic of changes unless it exists; an existing one is left as it is."""
        await self._create(topic, self._settings.publisher.partitions, {})

    async def _create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        (found,) = await self._admin.describe_topics([topic])
        if not found["error_code"]:
            return  # who may not create topics may still write to them
        factor = self._settings.publisher.replication_factor
        # aiokafka lets -1, the broker's default, pass only beside an explicit (here: empty) assignment.
        wanted = NewTopic(topic, partitions, factor, {} if factor == -1 else None, config)
        answer = await self._admin.create_topics([wanted])
        for name, code, *details in answer.topic_errors:
            error = for_code(code)
            if code and error is not TopicAlreadyExistsError:
                raise FatalError(f"Kafka does not create topic {name}: {details[0] if details else error.__name__}")


@asynccontextmanager
async def open_topics(settings: Settings) -> AsyncIterator[Topics]:
    """Connect to Kafka as an administrator of topics."""
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)
    try:
        await admin.start()
        yield Topics(settings, admin)
    finally:
        await admin.close()

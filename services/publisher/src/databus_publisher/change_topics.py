"""Open the topics of changes: create missing ones, and look up the partitions and limit of each one."""

from collections.abc import Iterable

from databus_core.errors import TopicNameRefused
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.settings import Publisher
from databus_core.settings.topic_claims import TopicClaims
from databus_publisher.producer import Producer
from databus_publisher.topics import Topics

log = get_logger(__name__)


class ChangeTopics:
    """The topics of changes that are open in one generation."""

    def __init__(self, settings: Publisher, producer: Producer, topics: Topics, claims: TopicClaims) -> None:
        self._wanted = settings.partitions
        self._compression = settings.compression
        self._producer = producer
        self._topics = topics
        self._claims = claims
        #: number of partitions by topic, kept for a generation: a key stays in its partition if partitions are added
        self.partition_counts: dict[str, int] = {}

    async def open(self, topics: Iterable[str]) -> None:
        """Open topics. Raises TopicRefused if Kafka does not create one."""
        for topic in topics:
            self.partition_counts[topic] = await self._open(topic)

    async def _open(self, topic: str) -> int:
        """Open a topic, and return the number of partitions to use."""
        wanted = self._wanted
        if not await self._ensure(topic):
            return wanted or 1
        existing = await self._producer.partitions(topic)
        if wanted and existing < wanted:
            text = f"{topic} has {existing} partitions, fewer than publisher.partitions={wanted}"
            log.warning(LogEvent.PARTITIONS_MISSING, text, topic=topic, partitions=existing)
        self._producer.set_limit(topic, await self._topics.limit(topic), self._compression)
        return min(existing, wanted or existing)

    async def _ensure(self, topic: str) -> bool:
        """Create a topic if it is missing. Return False if no table and no database can have it."""
        if self._claims.is_usable(topic):
            try:
                await self._topics.ensure(topic)
            except TopicNameRefused as refused:
                self._claims.refuse(topic, str(refused))
        return self._claims.is_usable(topic)

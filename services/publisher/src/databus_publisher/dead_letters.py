"""Write changes that cannot be published to the dead-letter topic.

With `exactly_once`, a dead letter is part of the Kafka transaction that would have contained the change.
"""

from databus_core import names
from databus_core.dead_letters import DeadLetter
from databus_core.errors import RAISE_LIMIT, FatalError
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import publisher as metrics
from databus_messages.formats.base import Record
from databus_messages.routing.partitions import Partition
from databus_publisher.producer import Producer
from databus_publisher.topics import Topics
from databus_wire.kafka_records import sequence_text

log = get_logger(__name__)


class DeadLetters:
    """Writes dead letters; the first one creates their topic."""

    def __init__(self, producer: Producer, topics: Topics) -> None:
        self._producer = producer
        self._topics = topics
        self._partition: Partition | None = None
        #: tables for which a dead letter was logged
        self._logged: set[str] = set()

    @property
    def is_open(self) -> bool:
        """Whether the topic was written to."""
        return self._partition is not None

    async def write(self, letter: DeadLetter, value: bytes = b"") -> None:
        """Write a dead letter; the record's value is left out if the letter is too large with it.

        Raises FatalError if the letter is too large even without the value.
        """
        partition = await self._opened()
        headers = letter.headers()
        if letter.reason != "parked":  # it is not about a change
            headers.append((names.SEQUENCE_HEADER, sequence_text(letter.transaction, letter.row)))
        if not await self._producer.send(partition, Record(letter.id, value, headers)):
            value = b""
            if not await self._producer.send(partition, Record(letter.id, value, headers)):
                raise FatalError(
                    f"{letter.error}; its dead letter is larger than topic {partition.topic} accepts: {RAISE_LIMIT}"
                )
        metrics.DEAD_LETTERS.labels(letter.reason).inc()
        if letter.table_name not in self._logged:
            self._logged.add(letter.table_name)
            log.warning(
                LogEvent.DEAD_LETTER,
                f"{letter.error} (the first dead letter of this table in this generation)",
                topic=letter.topic,
                table=letter.table_name,
                position=f"{letter.file}:{letter.start}",
                gtid=letter.gtid,
            )

    async def delete(self, letter: bytes) -> None:
        """Delete the dead letter with this key, whether there is one or not."""
        await self._producer.send(await self._opened(), Record(letter, None))

    async def _opened(self) -> Partition:
        if self._partition is None:
            topic = await self._topics.ensure_dead_letters()
            self._producer.set_limit(topic, await self._topics.limit(topic))
            self._partition = Partition(topic, 0)
        return self._partition

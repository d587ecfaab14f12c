"""The topics that have the changes of some tables: their names, their partitions, and where a dump's changes begin."""

import re
from collections.abc import Collection, Sequence

from aiokafka import TopicPartition

from databus_core import kafka_client, names
from databus_core.errors import ChangesLost, InvalidSettings
from databus_core.events import full_name
from databus_core.kafka_ends import Offsets, by_topic
from databus_core.kafka_topics import partitions_of
from databus_core.manifest import Manifest
from databus_core.settings import Settings
from databus_core.settings.rules import DEFAULT_OUTPUT


class ChangeTopics:
    """The topics of output `default` with changes of tables, and the topic of dead letters, which the topics lack.

    The patterns also match the topics of tables that are created later, and perhaps those of other tables.
    """

    def __init__(self, settings: Settings, tables: Sequence[str], formats: Collection[str] = ("databus",)) -> None:
        """`tables` are `schema.table` patterns, `formats` those that the consumer can read. Raises InvalidSettings."""
        if settings.publisher.delivery != "exactly_once":
            raise InvalidSettings(
                "publisher.delivery: exactly_once is needed to read changes, because records that are sent again have "
                "no order"
            )
        rules = (rule for rule in settings.publisher.rules if rule.output == DEFAULT_OUTPUT and not rule.drop)
        self._templates = [(rule.topic, rule.escape_names) for rule in rules if rule.format in formats]
        if not self._templates:
            raise InvalidSettings(
                f"publisher.routes: no rule of output default publishes in format {' or '.join(formats)}: add one"
            )
        self._settings = settings
        self._tables = tables
        self.dead_letters = names.dead_letter_topic(settings.name)
        self.pattern = f"{self._pattern(tables)}|{re.escape(self.dead_letters)}"

    def _pattern(self, tables: Sequence[str]) -> str:
        return names.table_topics(self._templates, self._settings.name, tables)

    def may_have(self, topic: str, table: tuple[str, str]) -> bool:
        """Return whether a topic may have records of a table."""
        return re.fullmatch(self._pattern([full_name(*table)]), topic) is not None

    def patterns_of(self, topic: str) -> list[str]:
        """List the patterns of tables whose records the topic may have."""
        return [each for each in self._tables if re.fullmatch(self._pattern([each]), topic)]

    async def partitions(self) -> list[TopicPartition]:
        """List the partitions of the topics that exist. Raises KafkaUnavailable, FatalError if Kafka refuses access."""
        matches = re.compile(self.pattern).fullmatch
        async with kafka_client.admin(self._settings.kafka) as admin:
            return await partitions_of(admin, lambda topic: matches(topic) is not None)

    async def beginnings(self) -> Offsets:
        """Read the first offset of each partition."""
        partitions = await self.partitions()
        async with kafka_client.consumer(self._settings.kafka) as consumer:
            return by_topic(await consumer.beginning_offsets(partitions))

    async def starts_after(self, manifest: Manifest) -> Offsets:
        """Return where to begin after a dump: at its offsets, and at the first record of other partitions.

        The offsets of a topic that does not exist any more are kept, so it is noticed that its records are missing.

        Raises ChangesLost or KafkaUnavailable.
        """
        earliest = await self.beginnings()
        starts = {topic: dict(partitions) for topic, partitions in earliest.items()}
        starts[self.dead_letters] = {0: manifest.dead_letter_offset}  # also if it does not exist yet
        for topic, offsets in manifest.kafka_offsets.items():
            for partition, offset in offsets.items():
                if topic in earliest and offset < earliest[topic].get(partition, offset + 1):
                    raise ChangesLost(
                        f"topic {topic}, partition {partition}: Kafka has already deleted offset {offset}, where the "
                        f"changes after dump {manifest.id} start: raise the topic's retention and request a new dump"
                    )
                starts.setdefault(topic, {})[partition] = offset
        return starts

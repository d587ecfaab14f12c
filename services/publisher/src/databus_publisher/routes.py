"""Which topic and partitions the changes of a table go to."""

import logging
from typing import NamedTuple

from databus import names
from databus.events import Table
from databus.settings import Settings
from databus_publisher import partitions
from databus_publisher.batches import Lane
from databus_publisher.producer import Producer
from databus_publisher.topics import Topics

log = logging.getLogger("databus.publisher")


class Route(NamedTuple):
    """Where the changes of a table go."""

    table: Table
    #: for all rows; None if each goes by its key to one of `lanes`
    lane: Lane | None
    #: for statements, each of which goes to all of them
    lanes: list[Lane]

    @property
    def unknown(self) -> Lane:
        """Stand for the partition of a row that was not read."""
        return self.lane or Lane(self.lanes[0].topic, -1, self.lanes[0].limit)


class Routes:
    """Finds routes. The number of partitions of a topic is kept while the generation lasts."""

    def __init__(self, settings: Settings, producer: Producer, topics: Topics) -> None:
        self._settings = settings
        self._producer = producer
        self._topics = topics
        self._partitions: dict[str, int] = {}

    async def find(self, table: Table) -> Route:
        """Find the route of a table; its topic is created if there is none."""
        topic = names.table_topic(self._settings.publisher.topic, self._settings.name, table)
        count = self._partitions.get(topic) or await self._count(topic)
        limit = await self._topics.limit(topic)
        lanes = [self._producer.lane(topic, partition, limit) for partition in range(count)]
        match self._settings.publisher.partition_by:
            case "single":
                return Route(table, lanes[0], lanes[:1])
            case "table":
                lane = lanes[partitions.of_table(table, count)]
                return Route(table, lane, [lane])
            case "primary_key":
                keyed = table.primary_key and count > 1
                return Route(table, None if keyed else lanes[partitions.of_table(table, count)], lanes)

    async def _count(self, topic: str) -> int:
        """Count the partitions to be used: a topic that grows must not move its rows."""
        await self._topics.ensure(topic)
        wanted = self._settings.publisher.partitions
        existing = await self._producer.partitions(topic)
        if wanted and existing < wanted:
            log.warning("topic %s has %d partitions, not the %d of publisher.partitions", topic, existing, wanted)
        count = self._partitions[topic] = min(existing, wanted or existing)
        return count

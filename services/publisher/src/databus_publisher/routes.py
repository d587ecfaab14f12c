"""Where the changes of a table go, by the rules: for each output a format, a topic and its partitions, a filter."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from databus import names
from databus.errors import InvalidSettings
from databus.events import Action, Begin, Row, RowsEvent, Table, decode_rows
from databus.rules import Rule, first_matches
from databus.settings import Settings
from databus_messages import partitions
from databus_messages.formats.base import Change
from databus_messages.partitions import spread
from databus_messages.routing.columns import column_index
from databus_messages.routing.filter import Filter, Run, filter_of
from databus_publisher.batches import Lane
from databus_publisher.outputs import Output
from databus_publisher.producer import Producer
from databus_publisher.topics import Topics

log = logging.getLogger("databus.publisher")


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """Where the changes of a table go, and as what."""

    output: Output
    #: as messages tell it
    table: Table
    filter: Filter | None
    #: the texts of statements tell of values that filters hide
    hides_queries: bool
    #: for all rows; None if each goes by its key to one of `lanes`
    lane: Lane | None
    #: for statements, each of which goes to all of them
    lanes: list[Lane]
    #: places of the columns by which rows are spread
    key: Sequence[int]
    #: for events that become records at once, whole, without anything around them
    direct: Lane | None
    #: … and one record each
    single: Lane | None

    @property
    def unknown(self) -> Lane:
        """Stand for the partition of a row that was not read."""
        return self.lane or Lane(self.lanes[0].topic, -1, self.lanes[0].limit)

    def whole(self, begin: Begin, event: RowsEvent) -> Change:
        """Take an event as it is."""
        return self._change(begin, event, self.output.format.rows_of(event))

    def _change(self, begin: Begin, event: RowsEvent, rows: Sequence[Row]) -> Change:
        first = event.row
        ordinals = range(first, first + len(rows) // (2 if event.action is Action.UPDATE else 1))
        query = None if self.hides_queries else event.query
        return Change(self.table, begin, event.action, event.start, event.end, first, ordinals, rows, query)

    def changes(self, begin: Begin, event: RowsEvent) -> Iterator[Change]:
        """Give what is told of an event, counted where the format wants it to be."""
        change, output = self._change(begin, event, decode_rows(event.rows)), self.output
        runs: Iterable[Run] = ((change.action, change.ordinals, change.rows),)
        if self.filter:
            runs = self.filter.changes(change.action, change.first, change.rows)
        first = output.told if output.emits_frames else change.first
        for action, captured, rows in runs:
            ordinals = output.count(len(captured)) if output.emits_frames else captured
            yield replace(change, action=action, first=first, ordinals=ordinals, rows=rows)

    def spread(self, change: Change) -> Iterator[tuple[Lane, Change]]:
        """Give each lane its part of a change."""
        if self.lane is not None:
            yield self.lane, change
            return
        for part in spread(change, self.key, len(self.lanes)):
            yield (
                self.lanes[part.partition],
                replace(change, action=part.action, ordinals=part.ordinals, rows=part.rows),
            )


class Routes:
    """Finds routes. The number of partitions of a topic is kept while the generation lasts."""

    def __init__(self, settings: Settings, producer: Producer, topics: Topics, outputs: Mapping[int, Output]) -> None:
        self._settings = settings
        self._rules = settings.publisher.rules
        self._salt = settings.publisher.salt.get_secret_value().encode()
        self._producer = producer
        self._topics = topics
        self._outputs = outputs
        self._partitions: dict[str, int] = {}

    async def find(self, table: Table) -> tuple[Route, ...]:
        """Find the routes of a table; topics are created where there are none. Raises InvalidSettings."""
        routes: dict[str, Route] = {}
        for rule in first_matches(self._rules, table.schema, table.name):
            topic = names.table_topic(rule.topic, self._settings.name, table)
            if other := routes.get(topic):
                raise InvalidSettings(
                    f"{rule}: {table.schema}.{table.name} goes to {topic} by rule {other.output.rule.number} already, "
                    "for another output: choose another topic"
                )
            routes[topic] = await self._route(rule, table, topic)
        return tuple(routes.values())

    async def _route(self, rule: Rule, table: Table, topic: str) -> Route:
        output, filtered = self._outputs[rule.number], filter_of(rule, table, self._salt)
        told = filtered.table if filtered else table
        key = _key(rule, table, filtered) or told.primary_key
        count = self._partitions.get(topic) or await self._count(topic)
        limit = await self._topics.limit(topic)
        lanes = [self._producer.lane(topic, partition, limit) for partition in range(count)]
        lane: Lane | None = None
        if rule.partition_by == "single" and not rule.key:
            lane, lanes = lanes[0], lanes[:1]
        elif rule.partition_by == "table" and not rule.key:
            lane = lanes[partitions.of_table(table, count)]
            lanes = [lane]
        elif not key or count == 1:
            lane = lanes[partitions.of_table(table, count)]
        hides = any(other.filters or other.drop for other in self._rules if other.output == rule.output)
        direct = None if filtered or output.emits_frames else lane
        single = direct if output.single else None
        return Route(output, told, filtered, hides, lane, lanes, key, direct, single)

    async def _count(self, topic: str) -> int:
        """Count the partitions to be used: a topic that grows must not move its rows."""
        await self._topics.ensure(topic)
        wanted = self._settings.publisher.partitions
        existing = await self._producer.partitions(topic)
        if wanted and existing < wanted:
            log.warning("topic %s has %d partitions, not the %d of publisher.partitions", topic, existing, wanted)
        count = self._partitions[topic] = min(existing, wanted or existing)
        return count


def _key(rule: Rule, table: Table, filtered: Filter | None) -> tuple[int, ...]:
    """Find the columns by which a rule spreads rows, in what is told of them; a table that is gone has none."""
    if not table.columns:
        return ()
    try:
        return tuple(filtered.column_index(name) if filtered else column_index(table, name) for name in rule.key)
    except InvalidSettings as error:
        raise InvalidSettings(f"{rule} does not fit table {table.schema}.{table.name}: key: {error}") from error

"""The destinations of DDL on a database: it goes once to each topic that has, or may have, changes of its tables.

A topic of all tables gets CREATE, ALTER and DROP. If each table has a topic of its own, a DROP goes to the topics of
the dropped tables, and all statements go to a topic of the database (`names.database_topic`), which has no rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from databus_core.events import Table
from databus_core.settings.rules import Rule, database_rules
from databus_core.settings.topic_claims import TopicClaims
from databus_messages.outputs import Output
from databus_messages.routing.partitions import Partition
from databus_messages.routing.routes import Route


class Destination(NamedTuple):
    """A topic to which DDL on a database is published."""

    output: Output
    #: all partitions that may have rows of the database's tables
    partitions: Sequence[Partition]
    #: the published tables that are dropped with the database
    dropped: list[Table]


class DatabaseRouter:
    """Finds the destinations of DDL on databases, of the outputs whose formats have it."""

    def __init__(self, rules: Sequence[Rule], outputs: Iterable[Output], claims: TopicClaims, pipeline: str) -> None:
        self._rules = rules
        self._claims = claims
        self._outputs = {output.rule.number: output for output in outputs if output.format.has_database_statements}
        self._pipeline = pipeline
        #: topic of the next statement's database → why Kafka refuses it: the statement becomes a dead letter
        self.refusals: Mapping[str, str] = {}

    def topics(self, schema: str) -> list[str]:
        """Claim the topics of a database, without those of its tables and those that are a format's own."""
        found = [topic for output, topic in self._of(schema) if topic != output.format.database_topic]
        for topic in found:
            self._claims.claim_for_database(topic)
        return found

    def destinations(
        self, schema: str, dropped: Iterable[Route], partition_counts: Mapping[str, int]
    ) -> Iterable[Destination]:
        """Return the destinations of a statement; `dropped` are the routes of the tables that it drops."""
        found: dict[str, Destination] = {}

        def add(output: Output, topic: str, refusal: str, *tables: Table) -> None:
            if topic not in found:
                is_single = topic == output.format.database_topic or output.rule.partition_by == "single"
                refusal = self.refusals.get(topic, refusal)
                count = 1 if is_single or topic in self.refusals else partition_counts[topic]
                found[topic] = Destination(output, [Partition(topic, number, refusal) for number in range(count)], [])
            found[topic].dropped.extend(tables)

        for route in dropped:
            if route.output.format.has_database_statements:
                own, partition = route.output.format.database_topic, route.row_partitions[0]
                add(route.output, own or partition.topic, "" if own else partition.refusal, route.table)
        for output, topic in self._of(schema):
            own = output.format.database_topic
            add(output, topic, "" if own else self._claims.claim_for_database(topic))
        return found.values()

    def _of(self, schema: str) -> Iterator[tuple[Output, str]]:
        for rule in database_rules(self._rules, schema):
            if output := self._outputs.get(rule.number):
                own = output.format.database_topic
                yield output, own or rule.database_topic_of(self._pipeline, schema)

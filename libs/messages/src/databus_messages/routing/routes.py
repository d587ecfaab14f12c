"""Routes the changes of a table by the rules: a route has the topic, partitions and filter for one output.

Routes only name topics and partitions; they do not send. The caller provides the partition counts: the publisher reads
them from Kafka, the command line uses one partition per topic.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from databus.errors import InvalidSettings
from databus.events import Action, Begin, Row, RowsEvent, Table
from databus.settings.rules import Rule
from databus.settings.topic_claims import Destination, TopicClaims
from databus_messages.formats.base import Change
from databus_messages.message import Message
from databus_messages.outputs import Output
from databus_messages.routing.columns import column_index
from databus_messages.routing.filter import Filter, Run, filter_of
from databus_messages.routing.partitions import UNKNOWN, Partition, partition_of_table, split_by_key
from databus_wire.packed_rows import PackedRows

_UPDATE = Action.UPDATE  # a constant, because looking up an enum member takes longer than comparing with it


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """The topic and partitions to which one output publishes the changes of a table, and their filter."""

    output: Output
    #: the table as it is published
    table: Table
    filter: Filter | None
    #: whether the text of DML statements is left out, because it may contain values that a rule of this output hides
    hides_queries: bool
    #: the partition of all rows, or all partitions if each row's partition is chosen by its key
    row_partitions: tuple[Partition, ...]
    #: indexes of the published columns by which a row's partition is chosen; empty if all rows have the same partition
    key: Sequence[int]
    #: the partitions of DDL statements: each statement is written to all of them
    ddl_partitions: tuple[Partition, ...]

    @property
    def unread_partition(self) -> Partition:
        """The partition of a row that the reader left unread (`OversizedRow`); UNKNOWN if the row's key decides it."""
        first = self.row_partitions[0]
        return first._replace(number=UNKNOWN) if self.key else first

    def messages(self, begin: Begin, event: RowsEvent) -> list[Message]:
        """Make the messages of a rows event: filtered, numbered for the output's format, and split by partition."""
        output, table_filter, action = self.output, self.filter, event.action
        first = output.next_ordinal(event.row)
        query = None if self.hides_queries else event.query
        packed = PackedRows(event.rows)
        rows: Sequence[Row]
        runs: Iterable[Run]
        if table_filter is None:
            rows = packed.unpack() if self.key or not output.accepts_packed_rows else packed
            changed = len(packed) // (2 if action is _UPDATE else 1)
            runs = ((action, range(event.row, event.row + changed), rows),)
        else:
            runs = table_filter.changes(action, event.row, packed.unpack())
        messages: list[Message] = []
        for action, ordinals, rows in runs:
            numbers = output.number_rows(len(ordinals)) if output.is_framed else ordinals
            head = self.table, begin, action, event.start, event.end, first, numbers, rows, query
            change = Change(*head, table_id=event.table_id)
            if self.key:
                messages += self._spread(change)
            else:
                messages.append(Message(output, self.row_partitions, change))
        return messages

    def _spread(self, change: Change) -> Iterator[Message]:
        """Split a change by partition."""
        for part in split_by_key(change, self.key, len(self.row_partitions)):
            content = replace(change, action=part.action, ordinals=part.ordinals, rows=part.rows)
            yield Message(self.output, (self.row_partitions[part.partition],), content)


class Router:
    """Makes the routes of a table by the rules."""

    def __init__(self, rules: Sequence[Rule], outputs: Iterable[Output], claims: TopicClaims, salt: bytes) -> None:
        self._rules = rules
        self._outputs = {output.rule.number: output for output in outputs}
        self._claims = claims
        self._salt = salt

    def topics(self, table: Table, *, unknown_drop: bool = False) -> list[Destination]:
        """Claim the topics to which a table's changes, or the DROP of a table that was not known, are published."""
        found = self._claims.claim(table.schema, table.name)
        return [
            each for each in found if not (unknown_drop and self._outputs[each.rule.number].format.omits_unknown_drops)
        ]

    def routes(
        self, table: Table, partition_counts: Mapping[str, int], *, unknown_drop: bool = False
    ) -> tuple[Route, ...]:
        """Make the routes for `topics`, given the number of partitions of each topic. Raises InvalidSettings."""
        found = self.topics(table, unknown_drop=unknown_drop)
        return tuple(self._route(each, table, partition_counts[each.topic]) for each in found)

    def _route(self, destination: Destination, table: Table, count: int) -> Route:
        rule, topic, refusal = destination.rule, destination.topic, destination.refusal
        table_filter = filter_of(rule, table, self._salt)
        published = table_filter.table if table_filter else table
        partitions = tuple(Partition(topic, number, refusal) for number in range(count))
        if rule.partition_by == "primary_key" or rule.key:
            key = _key(rule, table, table_filter) or published.row_key
            key = key if count > 1 else ()
            for_ddl = partitions
            for_rows = partitions if key else (partitions[partition_of_table(table, count)],)
        else:
            key = ()
            for_rows = for_ddl = (partitions[0 if rule.partition_by == "single" else partition_of_table(table, count)],)
        hides = any(other.filters or other.drop for other in self._rules if other.output == rule.output)
        return Route(self._outputs[rule.number], published, table_filter, hides, for_rows, key, for_ddl)


def _key(rule: Rule, table: Table, table_filter: Filter | None) -> tuple[int, ...]:
    """Return the indexes of the rule's `key` columns in published rows; none for a dropped table."""
    if not table.columns:
        return ()
    try:
        return tuple(
            table_filter.column_index(name) if table_filter else column_index(table, name) for name in rule.key
        )
    except InvalidSettings as error:
        raise InvalidSettings(f"{rule} does not fit table {table.full_name}: key: {error}") from error

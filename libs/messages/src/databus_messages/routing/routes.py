"""Routes the changes of a table by the rules: a route has the topic, partitions and filter for one output.

Routes only name topics and partitions; they do not send. The caller provides the partition counts: the publisher reads
them from Kafka, the command line uses one partition per topic.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from databus_core.errors import InvalidSettings, RuleMismatch
from databus_core.events import Action, Begin, Row, RowsEvent, SnapshotEvent, Table
from databus_core.settings.rules import Rule
from databus_core.settings.topic_claims import Destination, TopicClaims
from databus_messages.formats.base import Change, SnapshotMark
from databus_messages.message import Message
from databus_messages.outputs import Output
from databus_messages.routing.absent import absent_columns, refused
from databus_messages.routing.columns import column_index
from databus_messages.routing.filter import Filter, Run, filter_of
from databus_messages.routing.partitions import UNKNOWN, Partition, partition_of_table, split_by_key
from databus_wire.packed_rows import PackedRows
from databus_wire.rows_writer import RowsWriter

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

    def rows_writer(self) -> RowsWriter | None:
        """Return a compiled writer of rows, which makes the records of `messages`; None if rows need more than that."""
        if self.filter or self.row_partitions[0].refusal:
            return None
        writer = self.output.format.rows_writer(self.table)
        if writer is not None:
            writer.publish_to(self.row_partitions, tuple(self.key), self.output.counter)
        return writer

    def messages(self, begin: Begin, event: RowsEvent) -> list[Message]:
        """Make the messages of a rows event: filtered, numbered for the output's format, and split by partition."""
        output = self.output
        first = output.next_ordinal(event.row)
        query = None if self.hides_queries else event.query
        messages: list[Message] = []
        packed = PackedRows(event.rows)
        for action, ordinals, rows, refusal in self._runs(event.action, event.row, packed, partial=event.partial):
            numbers, captured = (output.number_rows(len(ordinals)), ordinals) if output.is_framed else (ordinals, None)
            head = self.table, begin, action, event.start, event.end, first, numbers, rows, query
            change = Change(*head, table_id=event.table_id, captured=captured)
            messages += self._partial(replace(change, refusal=refusal)) if event.partial else self._routed(change)
        return messages

    def snapshot(self, begin: Begin, event: SnapshotEvent) -> list[Message]:
        """Make the messages of rows that a backfill loaded: filtered, and split by partition.

        The first message has the event's marks of the first row, the last message those of the last row. If no rows are
        left, a message without rows has the marks; it goes to the first partition of the rows.
        """
        marks = event.first, event.last, event.first_of_table, event.last_of_table
        mark = SnapshotMark(event.time_us, event.initial, *marks)
        head = self.table, begin, Action.INSERT, begin.end, begin.end, event.row
        messages: list[Message] = []
        for _, ordinals, rows, _ in self._runs(Action.INSERT, event.row, PackedRows(event.rows)):  # one run at most
            if ordinals:
                messages += self._routed(Change(*head, ordinals, rows, snapshot=mark))
        if not messages and any(marks):
            messages.append(Message(self.output, self.row_partitions[:1], Change(*head, (), (), snapshot=mark)))
        return messages

    def _runs(self, action: Action, first: int, packed: PackedRows, *, partial: bool = False) -> Iterable[Run]:
        """Return what the filter publishes of an event's rows, the first of which has this ordinal."""
        if self.filter is not None:
            changes = self.filter.partial_changes if partial else self.filter.changes
            return changes(action, first, packed.unpack())
        rows: Sequence[Row] = packed.unpack() if self.key or not self.output.accepts_packed_rows else packed
        changed = len(packed) // (2 if action is _UPDATE else 1)
        return (Run(action, range(first, first + changed), rows),)

    def _routed(self, change: Change) -> Iterable[Message]:
        """Split a change by partition, if the rows' keys decide about it."""
        if not self.key:
            return (Message(self.output, self.row_partitions, change),)
        return [Message(self.output, *part) for part in self._spread(change)]

    def _partial(self, change: Change) -> Iterator[Message]:
        """Make the messages of a change of a partial event; refuse what needs values that are ABSENT."""
        absent = absent_columns(change.rows)
        if absent and not self.output.format.accepts_absent:
            change = refused(change, absent, f"and format {self.output.rule.format} cannot express that")
        if not absent.isdisjoint(self.key):
            change = refused(change, absent, "by which the partition is chosen")
            yield Message(self.output, (self.unread_partition,), change)
            return
        change = replace(change, partial=bool(absent))
        for partition, part in self._spread(change) if self.key else [(self.row_partitions, change)]:
            lacking = absent_columns(part.rows) if part.action is Action.INSERT else set()
            why = "and an update that is published as an insert needs them"
            yield Message(self.output, partition, refused(part, lacking, why) if lacking else part)

    def _spread(self, change: Change) -> Iterator[tuple[tuple[Partition, ...], Change]]:
        """Split a change by partition."""
        parts, mark = split_by_key(change, self.key, len(self.row_partitions)), change.snapshot
        for number, part in enumerate(parts, 1):
            marked = mark and mark.of_part(first=number == 1, last=number == len(parts))
            content = replace(part.of(change), snapshot=marked) if marked else part.of(change)
            yield (self.row_partitions[part.partition],), content


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
        """Make the routes for `topics`, given the number of partitions of each topic. Raises RuleMismatch."""
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
        raise RuleMismatch(f"{rule} does not fit table {table.full_name}: key: {error}") from error

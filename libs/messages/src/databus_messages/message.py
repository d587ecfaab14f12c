"""A message: rows or a DDL statement, which a format encodes as records, or a frame of records already encoded."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from databus_binlog import Position
from databus_core.errors import PoisonError
from databus_core.events import OversizedRow
from databus_messages.formats.base import (
    BackfilledRows,
    Change,
    DdlStatement,
    KeyValueRecords,
    Record,
    SnapshotMark,
    SnapshotRows,
    TransactionEnd,
)
from databus_messages.outputs import Output
from databus_messages.routing.partitions import Partition, images_per_row
from databus_messages.sequence import Ordinals


class Frame(NamedTuple):
    """Records that a format writes before or after a transaction's changes, or heartbeats between transactions."""

    records: Sequence[Record]
    sequences: Ordinals


#: the records of a message; `len()` and indexing work on either type
Records: TypeAlias = KeyValueRecords | tuple[Record, ...]
Content: TypeAlias = Change | DdlStatement | Frame


class Message(msgspec.Struct, frozen=True, gc=False):
    """Content that is encoded together, and the destination of its records."""

    output: Output
    #: each record is written to all these partitions, unless it names one of the format's own topics
    partitions: Sequence[Partition]
    content: Content
    #: set if the message is about a row that was not read, because it is larger than `reader.row_limit`
    unread: OversizedRow | None = None

    @property
    def may_block(self) -> bool:
        """Whether `encode` may wait for another service, e.g. a schema registry."""
        return not isinstance(self.content, Frame) and self.output.format.may_block(self.content.table)

    def encode(self) -> Records:
        """Make the records.

        Raises PoisonError for anything that the format cannot express, RetryableError or FatalError if a service fails.
        """
        content = self.content
        records: Iterable[Record]
        if isinstance(content, Change):
            if content.refusal:
                raise PoisonError(content.refusal)
            records = self._change(content)
            if isinstance(records, KeyValueRecords):
                return records
        elif isinstance(content, DdlStatement):
            records = self.output.format.statement(content)
        else:
            records = content.records
        return tuple(records)

    def sequenced(self) -> Records:
        """Make the records, each with the header of its sequence; raises the errors of `encode`."""
        records, sequences = self.encode(), self.content.sequences
        if isinstance(records, KeyValueRecords):
            return KeyValueRecords(records.keys, records.values, sequences)
        count = len(records)
        return tuple(
            Record(key, value, (*headers, sequences.header(index, count, row)), topic, row)
            for index, (key, value, headers, topic, row) in enumerate(records)
        )

    def _change(self, change: Change) -> Iterable[Record]:
        if change.snapshot is None:
            return self.output.format.change(change)
        return self.output.format.snapshot(_snapshot_rows(change, change.snapshot))

    def with_transaction_end(self, end: TransactionEnd) -> "Message":
        """Return the message with `transaction_end` set, if it has rows."""
        content = self.content
        return replace(self, content=replace(content, transaction_end=end)) if isinstance(content, Change) else self

    def halves(self) -> "tuple[Message, Message] | None":
        """Split a message of several rows in two; return None for any other message."""
        change = self.content
        if not isinstance(change, Change) or len(change.ordinals) < 2:
            return None
        half = len(change.ordinals) // 2
        cut = half * images_per_row(change.action)
        first = replace(change, ordinals=change.ordinals[:half], rows=change.rows[:cut])
        second = replace(change, ordinals=change.ordinals[half:], rows=change.rows[cut:])
        if change.captured is not None:
            first = replace(first, captured=change.captured[:half])
            second = replace(second, captured=change.captured[half:])
        if change.snapshot is not None:
            first = replace(first, snapshot=change.snapshot.of_part(first=True, last=False))
            second = replace(second, snapshot=change.snapshot.of_part(first=False, last=True))
        return replace(self, content=first), replace(self, content=second)

    def __str__(self) -> str:
        content = self.content
        if isinstance(content, Frame):
            return f"a begin, end or heartbeat message of format {self.output.rule.format}"
        return f"{content.action} of {content.table.full_name} at {content.begin.file}:{content.start}"


def _snapshot_rows(change: Change, mark: SnapshotMark) -> SnapshotRows:
    begin = change.begin
    return SnapshotRows(
        change.table,
        Position("", begin.file, change.end),
        mark.time_us,
        change.rows,
        first=mark.first,
        last=mark.last,
        first_of_table=mark.first_of_table,
        last_of_table=mark.last_of_table,
        backfill=BackfilledRows(begin.transaction, change.ordinals, mark.initial),
    )

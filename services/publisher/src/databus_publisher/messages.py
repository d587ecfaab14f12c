"""A message: what becomes one record of a topic, and where it comes from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from databus.events import Action, Begin, QueryEvent, Row, RowsEvent, Table, decode_rows
from databus.formats.databus import Encoder
from databus_publisher.batches import Lane


@dataclass(frozen=True, slots=True)
class Message:
    """Rows of one event, or a statement."""

    lane: Lane
    table: Table
    begin: Begin
    action: Action
    #: offsets of the binlog event
    start: int
    end: int
    #: of the rows in their transaction
    ordinals: Sequence[int] = (0,)
    #: an update alternates before and after images
    rows: Sequence[Row] = ()
    statement: QueryEvent | None = None

    @classmethod
    def of_rows(cls, lane: Lane, table: Table, begin: Begin, event: RowsEvent) -> "Message":
        """Make the message of a whole rows event."""
        rows = decode_rows(event.rows)
        changes = len(rows) // images(event.action)
        ordinals = range(event.row, event.row + changes)
        return cls(lane, table, begin, event.action, event.start, event.end, ordinals, rows)

    @classmethod
    def of_statement(cls, lane: Lane, table: Table, begin: Begin, event: QueryEvent) -> "Message":
        """Make the message of a DDL statement."""
        return cls(lane, table, begin, event.action, event.start, event.end, statement=event)

    def encode(self, encoder: Encoder) -> tuple[bytes, bytes]:
        """Give key and value. Raises PoisonError."""
        if self.statement:
            return encoder.query(self.table, self.begin.file, self.statement)
        return encoder.change(self.table, self.begin.file, self.end, self.action, self.rows)

    def halves(self) -> tuple["Message", "Message"]:
        """Cut a message of several rows in two."""
        half = len(self.ordinals) // 2
        cut = half * images(self.action)
        return (
            replace(self, ordinals=self.ordinals[:half], rows=self.rows[:cut]),
            replace(self, ordinals=self.ordinals[half:], rows=self.rows[cut:]),
        )

    def __str__(self) -> str:
        return f"{self.action} of {self.table.schema}.{self.table.name} at {self.begin.file}:{self.start}"


def images(action: Action) -> int:
    """Count the row images of one change."""
    return 2 if action is Action.UPDATE else 1

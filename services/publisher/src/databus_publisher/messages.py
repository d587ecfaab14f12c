"""A message: what a format makes records of, where they go, and where it comes from."""

from typing import NamedTuple

from msgspec.structs import replace

from databus_messages.formats.base import Change, DdlStatement
from databus_messages.partitions import images
from databus_publisher.batches import Lane
from databus_publisher.outputs import Output


class Message(NamedTuple):
    """A record of rows of an event, or of a statement."""

    output: Output
    lane: Lane
    told: Change | DdlStatement
    #: of the records of the same rows, from 0, and how many these are
    place: int = 0
    records: int = 1

    @property
    def ordinal(self) -> int:
        """Ordinal in its transaction of the (first) row that the record tells of."""
        if isinstance(self.told, Change):
            return self.told.ordinals[self.place * len(self.told.ordinals) // self.records]
        return 0

    @property
    def several(self) -> bool:
        """Whether it tells of several rows, all at once."""
        return isinstance(self.told, Change) and len(self.told.ordinals) > 1 == self.records

    def __str__(self) -> str:
        told = self.told
        return f"{told.action} of {told.table.schema}.{told.table.name} at {told.begin.file}:{told.start}"


def halves(change: Change) -> tuple[Change, Change]:
    """Cut a change of several rows in two."""
    half = len(change.ordinals) // 2
    cut = half * images(change.action)
    return (
        replace(change, ordinals=change.ordinals[:half], rows=change.rows[:cut]),
        replace(change, ordinals=change.ordinals[half:], rows=change.rows[cut:]),
    )

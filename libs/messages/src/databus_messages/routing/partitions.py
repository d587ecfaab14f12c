"""Chooses the partition of a row: its changes go to the same partition, in order, as long as its key stays the same.

With `partition_by: primary_key`, or with a rule's `key`, the partition is the CRC-32 of the key columns' published
texts (docs/reference/values.md), joined by zero bytes, modulo the number of partitions. With `partition_by: table`, and
for tables without such a key, it is the CRC-32 of the table's name, `schema.table`, modulo the number of partitions.
With `partition_by: single` it is 0.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from databus_core.events import Action, Row, Table
from databus_messages.formats.base import Change

#: number of the partition of a row that was not read, if the partition depends on the row's key
UNKNOWN = -1


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int
    #: why the records have no topic and become dead letters; empty otherwise
    refusal: str = ""


@dataclass(slots=True)
class Part:
    """Rows of one event with one action that go to one partition."""

    partition: int
    action: Action
    #: indexes of the rows in the event
    indexes: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def of(self, change: Change) -> Change:
        """Return the part of a change that has only these rows."""
        ordinals, captured = [change.ordinals[index] for index in self.indexes], change.captured
        if captured is not None:
            captured = [captured[index] for index in self.indexes]
        return replace(change, action=self.action, ordinals=ordinals, rows=self.rows, captured=captured)


def partition_of_table(table: Table, partitions: int) -> int:
    """Choose the partition of all rows of a table."""
    return zlib.crc32(table.full_name.encode()) % partitions


def partition_of_row(row: Row, key: Sequence[int], partitions: int) -> int:
    """Choose the partition of a row by the values of its key columns; NULL counts as an empty text."""
    return zlib.crc32(b"\0".join([row[column] or b"" for column in key])) % partitions


def images_per_row(action: Action) -> int:
    """Return how many images a changed row has: an update has one before and one after the change."""
    return 2 if action is Action.UPDATE else 1


def split_by_key(change: Change, key: Sequence[int], partitions: int) -> list[Part]:
    """Split the rows of a change by partition; the order within each partition is kept.

    An update that moves a row to another partition becomes a delete in the old one and an insert in the new one.
    """
    parts: list[Part] = []
    latest: dict[int, Part] = {}

    def add(partition: int, action: Action, index: int, *images: Row) -> None:
        part = latest.get(partition)
        if part is None or part.action is not action:
            part = latest[partition] = Part(partition, action)
            parts.append(part)
        part.indexes.append(index)
        part.rows += images

    rows = change.rows
    if change.action is not Action.UPDATE:
        for index, row in enumerate(rows):
            add(partition_of_row(row, key, partitions), change.action, index, row)
        return parts
    for index, (before, after) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
        old, new = partition_of_row(before, key, partitions), partition_of_row(after, key, partitions)
        if old == new:
            add(new, Action.UPDATE, index, before, after)
        else:
            add(old, Action.DELETE, index, before)
            add(new, Action.INSERT, index, after)
    return parts

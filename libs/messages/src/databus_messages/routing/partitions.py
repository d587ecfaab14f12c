"""Chooses the partition of a row: all changes of one row go to the same partition, in order.

With `primary_key`, or with the columns that a rule names, the partition is the CRC-32 of the key's texts
(docs/reference/values.md), joined by a zero byte, modulo the number of partitions. Without a primary key, and with
`table`, it is the CRC-32 of the table's name, `schema.table`.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from databus.events import Action, Row, Table
from databus_messages.formats.base import Change

#: stands for the partition of a row that was not read: it would depend on the row's key
UNKNOWN = -1


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


@dataclass(slots=True)
class Part:
    """Rows of one event with one action that go to one partition."""

    partition: int
    action: Action
    #: of the rows in their transaction
    ordinals: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def of_table(table: Table, partitions: int) -> int:
    """Choose the partition of a table."""
    return zlib.crc32(table.full_name.encode()) % partitions


def of_row(row: Row, key: Sequence[int], partitions: int) -> int:
    """Choose the partition of a row by the values of its key columns; NULL counts as an empty text."""
    return zlib.crc32(b"\0".join([row[column] or b"" for column in key])) % partitions


def images_per_row(action: Action) -> int:
    """Count the row images of one changed row: an update has one before and one after the change."""
    return 2 if action is Action.UPDATE else 1


def split_by_key(change: Change, key: Sequence[int], partitions: int) -> list[Part]:
    """Split the rows of a change by partition; the order within each partition is kept.

    An update that moves a row to another partition becomes a delete in the old one and an insert in the new one.
    """
    parts: list[Part] = []
    last: dict[int, Part] = {}

    def put(partition: int, action: Action, ordinal: int, *rows: Row) -> None:
        part = last.get(partition)
        if part is None or part.action is not action:
            part = last[partition] = Part(partition, action)
            parts.append(part)
        part.ordinals.append(ordinal)
        part.rows += rows

    rows = change.rows
    if change.action is not Action.UPDATE:
        for ordinal, row in zip(change.ordinals, rows, strict=True):
            put(of_row(row, key, partitions), change.action, ordinal, row)
        return parts
    for ordinal, before, after in zip(change.ordinals, rows[::2], rows[1::2], strict=True):
        old, new = of_row(before, key, partitions), of_row(after, key, partitions)
        if old == new:
            put(new, Action.UPDATE, ordinal, before, after)
        else:
            put(old, Action.DELETE, ordinal, before)
            put(new, Action.INSERT, ordinal, after)
    return parts

"""Which partition a row goes to: all changes of one row to the same one, in order.

By `primary_key`, or the columns a rule chooses, it is the CRC-32 of the key's texts (docs/reference/values.md), joined
by a zero byte, modulo the number of partitions; without a primary key and by `table` it is that of the table's name,
`schema.table`.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from databus.events import Action, Row, Table
from databus_messages.formats.base import Change


@dataclass(slots=True)
class Part:
    """Rows of one event that go to one partition with one message."""

    partition: int
    action: Action
    #: of the rows in their transaction
    ordinals: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def of_table(table: Table, partitions: int) -> int:
    """Choose the partition of a table."""
    return zlib.crc32(f"{table.schema}.{table.name}".encode()) % partitions


def of_row(row: Row, key: Sequence[int], partitions: int) -> int:
    """Choose the partition of a row by its key; NULL is as good as an empty text."""
    return zlib.crc32(b"\0".join([row[column] or b"" for column in key])) % partitions


def images(action: Action) -> int:
    """Count the row images of one change."""
    return 2 if action is Action.UPDATE else 1


def spread(change: Change, key: Sequence[int], partitions: int) -> list[Part]:
    """Part the rows of a change, in an order that keeps that of each partition.

    An update that moves a row to another partition is a delete in the old one and an insert in the new one.
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

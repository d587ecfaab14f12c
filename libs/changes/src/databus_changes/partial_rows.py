"""Completes the rows that `binlog_row_image=NOBLOB` logs, as a replica does, for `publisher.publish_partial`.

With NOBLOB, images lack only BLOB and TEXT columns, which in MariaDB include JSON; tests/cases/noblob*.sql show it:

* An INSERT lacks a column that the statement does not set and that has no default: it is NULL, or empty if NOT NULL.
* An after image lacks a column that the statement does not set: its value is that of the before image, if that has it.

So inserts become complete. What remains ABSENT, in before images and in updates, is a value that was not changed. There
is one exception: MariaDB logs REPLACE as an update that lacks the columns it empties, so that its own replicas keep the
old values.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from databus_binlog import ABSENT, Flavor, Value
from databus_binlog.events import Rows
from databus_core.events import Table

#: types of the columns that NOBLOB leaves out
_LEFT_OUT = frozenset({
    "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob",
})  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode


class CompletedRows(NamedTuple):
    """Row images without the gaps whose values are certain."""

    #: msgpack array of `Row`
    rows: msgspec.Raw
    #: whether some values are still ABSENT
    partial: bool


def complete(event: Rows, table: Table, flavor: Flavor) -> CompletedRows | None:
    """Complete rows that lack columns; None if a value is missing that NOBLOB logs, or that may have been changed."""
    images, columns = event.images(), table.columns
    # An event has one bitmap of its columns for all before images, and one for all after images.
    before, after = _absent(images[0]), _absent(images[-1])
    if any(columns[index].type not in _LEFT_OUT for index in before | after):
        return None
    if event.action != "delete" and any(_may_change_unlogged(table, index, flavor) for index in after):
        return None
    if event.action == "insert":
        for index in after:
            for image in images:
                image[index] = None if columns[index].nullable else b""
        before = after = set()
    elif event.action == "update":
        for index in after - before:
            for old, new in zip(images[::2], images[1::2], strict=True):
                new[index] = old[index]
        after &= before
    if not (before | after).isdisjoint({*table.primary_key, *table.row_key}):
        return None
    return CompletedRows(msgspec.Raw(_encode(images)), partial=bool(before | after))


def _absent(image: Sequence[Value]) -> set[int]:
    return {index for index, value in enumerate(image) if value is ABSENT}


def _may_change_unlogged(table: Table, index: int, flavor: Flavor) -> bool:
    """Whether the column may be a virtual one of MariaDB, which does not log these, although their values change.

    A table that is known only from its table map, which does not show what is virtual, has no charset.
    """
    return flavor == "mariadb" and (not table.charset or table.columns[index].generated)

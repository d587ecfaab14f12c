"""Ways to publish updates and deletes whose rows lack values (`Change.partial`): a placeholder, or fewer columns."""

from functools import lru_cache

from msgspec.structs import replace

from databus_core.events import Action, Row, Table, is_absent
from databus_messages.formats.base import Change


def with_placeholders(change: Change, placeholder: bytes) -> Change:
    """Return a change with a text in place of each value that is ABSENT; only columns of text and bytes have these."""
    rows: list[Row] = [[placeholder if is_absent(cell) else cell for cell in row] for row in change.rows]
    return replace(change, rows=rows)


def without_absent(change: Change) -> Change:
    """Return a change whose table does not have the columns that the rows lack; in an update, the rows after it.

    Where only the row before an update lacks a value, it gets the new value. So the column does not look changed: the
    binlog does not show whether it is.
    """
    rows = [*change.rows]
    absent = tuple(index for index, cell in enumerate(rows[-1]) if is_absent(cell))
    kept = [index for index in range(len(change.table.columns)) if index not in absent]
    if change.action is Action.UPDATE:
        for number in range(0, len(rows), 2):
            before, after = rows[number : number + 2]
            rows[number] = [new if is_absent(old) else old for old, new in zip(before, after, strict=True)]
    return replace(change, table=_reduced(change.table, absent), rows=[[row[index] for index in kept] for row in rows])


@lru_cache(256)
def _reduced(table: Table, absent: tuple[int, ...]) -> Table:
    """Return a table without some columns, none of which is part of its key."""
    kept = [index for index in range(len(table.columns)) if index not in absent]
    return replace(
        table,
        columns=tuple(table.columns[index] for index in kept),
        primary_key=tuple(kept.index(index) for index in table.primary_key),
    )

"""Changes whose rows lack values (`publisher.publish_partial`): which, and what cannot be published without them."""

from collections.abc import Sequence

from msgspec.structs import replace

from databus_core.events import Row, is_absent
from databus_messages.formats.base import Change


def absent_columns(rows: Sequence[Row]) -> set[int]:
    """Return the indexes of the columns that are absent from some rows of one change.

    In a binlog event, all before images lack the same columns, and so do all after images.
    """
    return {index for row in rows[:2] for index, cell in enumerate(row) if is_absent(cell)}


def refused(change: Change, columns: set[int], why: str) -> Change:
    """Return a change that becomes a dead letter, because its rows lack these columns; keep an earlier refusal."""
    names = ", ".join(change.table.columns[index].name for index in sorted(columns))
    return replace(change, refusal=change.refusal or f"the binlog lacks the values of {names}, {why}")

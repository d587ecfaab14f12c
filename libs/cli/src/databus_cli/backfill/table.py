"""The table of `databus backfill list`, and the texts of its cells."""

import sys
from datetime import datetime, timedelta

from rich.console import Console
from rich.table import Table

from databus_core.backfill_status import BackfillStatus
from databus_core.table_states import FINAL_STATES

#: what a client wants → how the state shows that the reader has not done it yet
_PENDING = {"pause": "pausing", "cancel": "cancelling"}


def print_table(found: list[BackfillStatus]) -> None:
    """Print backfills to standard output."""
    columns = ("backfill", "table", "state", "rows", "estimate", "rows/s", "left", "requested", "")
    table = Table(*columns, box=None, pad_edge=False)
    for each in found:
        table.add_row(
            each.id, each.full_name, state_of(each), f"{each.rows:,}", f"{each.estimate:,}", _speed(each), _left(each),
            _time(each.requested), each.error,
        )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 200, markup=False, highlight=False).print(table)


def state_of(status: BackfillStatus) -> str:
    """Return the state, and what is still to happen because a client wants it."""
    if status.state in FINAL_STATES or (status.wanted, status.state) == ("pause", "paused"):
        return status.state
    return f"{status.state} ({_PENDING[status.wanted]})" if status.wanted in _PENDING else status.state


def _speed(status: BackfillStatus) -> str:
    return f"{status.rows_per_second:,.0f}" if status.rows_per_second is not None else ""


def _left(status: BackfillStatus) -> str:
    return str(timedelta(seconds=round(status.seconds_left))) if status.seconds_left is not None else ""


def _time(time: datetime | None) -> str:
    return time.isoformat(" ", "seconds").removesuffix("+00:00") if time else ""

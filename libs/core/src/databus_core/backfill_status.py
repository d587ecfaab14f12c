"""What clients see of a pipeline's backfills: what was requested, and how far each has come."""

from datetime import UTC, datetime

import msgspec

from databus_core.events import full_name
from databus_core.table_states import Backfill, BackfillProgress, BackfillState, Cause, TableStates, Wanted


class BackfillStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A backfill: what was requested, and how far it has come."""

    id: str
    schema: str
    table: str
    state: BackfillState
    #: what clients want it to do
    wanted: Wanted
    #: why the table is loaded
    cause: Cause
    #: SQL condition of the rows to load; empty: all rows
    where: str
    #: whether the table is emptied for consumers first
    clean: bool
    #: the only output of `publisher.routes` that gets the rows; empty: all outputs of the table
    output: str
    #: whether the table may be loaded although it has no usable key and is large
    any_size: bool
    #: rows that were read
    rows: int
    #: rows of the table when the backfill began, as the database estimates them
    estimate: int
    #: average since the backfill began, pauses included; null: not known
    rows_per_second: float | None
    #: estimate of the time until it is done; null: not known
    seconds_left: float | None
    requested: datetime | None
    started: datetime | None
    #: when its progress was last written
    updated: datetime | None
    #: why it failed
    error: str

    @property
    def full_name(self) -> str:
        """The name `schema.table`."""
        return full_name(self.schema, self.table)


class BackfillList(msgspec.Struct, frozen=True):
    """Backfills, the newest first."""

    backfills: list[BackfillStatus]


def newest_first(states: TableStates) -> list[BackfillStatus]:
    """Describe all backfills, the newest request first."""
    return [status_of(states, each) for _, each in sorted(states.backfills.items(), reverse=True)]


def status_of(states: TableStates, backfill: Backfill) -> BackfillStatus:
    """Describe a backfill."""
    progress = states.progress_of(backfill.id)
    speed = _speed(progress)
    left = max(progress.estimate - progress.rows, 0)
    return BackfillStatus(
        id=backfill.id,
        schema=backfill.schema,
        table=backfill.table,
        state=progress.state,
        wanted=backfill.wanted,
        cause=backfill.cause,
        where=backfill.where,
        clean=backfill.clean,
        output=backfill.output,
        any_size=backfill.any_size,
        rows=progress.rows,
        estimate=progress.estimate,
        rows_per_second=speed,
        seconds_left=left / speed if speed and left and progress.state == "running" else None,
        requested=_time(backfill.requested_us),
        started=_time(progress.started_us),
        updated=_time(progress.updated_us),
        error=progress.error,
    )


def _speed(progress: BackfillProgress) -> float | None:
    """Return the average number of rows per second; None before the first rows."""
    microseconds = progress.updated_us - progress.started_us
    return progress.rows * 1e6 / microseconds if progress.rows and progress.started_us and microseconds > 0 else None


def _time(microseconds: int) -> datetime | None:
    return datetime.fromtimestamp(microseconds / 1e6, UTC) if microseconds else None

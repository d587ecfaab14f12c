"""What clients see of a backfill."""

import pytest

from databus_core.backfill_status import newest_first, status_of
from databus_core.table_states import Backfill, BackfillProgress, BackfillState, TableStates

SECOND = 1_000_000
FIRST, NEXT = (Backfill(id=id_, schema="shop", table=id_, requested_us=SECOND) for id_ in ("a", "b"))


def test_the_newest_request_comes_first() -> None:
    states = TableStates({"a": FIRST, "b": NEXT}, {"a": BackfillProgress(state="done", rows=4)})
    assert [(each.id, each.state, each.rows) for each in newest_first(states)] == [
        ("b", "waiting", 0),
        ("a", "done", 4),
    ]


@pytest.mark.parametrize(
    ("state", "rows", "estimate", "elapsed", "speed", "left"),
    [
        ("running", 500, 2_000, 5, 100, 15),
        ("paused", 500, 2_000, 5, 100, None),
        ("running", 500, 0, 5, 100, None),  # the database has no estimate
        ("running", 500, 400, 5, 100, None),  # the estimate was too low
        ("running", 0, 2_000, 5, None, None),
        ("running", 500, 2_000, 0, None, None),
    ],
)
def test_speed_and_time_left_are_null_if_they_are_not_known(
    state: BackfillState, rows: int, estimate: int, elapsed: int, speed: float | None, left: float | None
) -> None:
    progress = BackfillProgress(
        state=state, rows=rows, estimate=estimate, started_us=SECOND, updated_us=(1 + elapsed) * SECOND
    )
    status = status_of(TableStates({"a": FIRST}, {"a": progress}), FIRST)
    assert (status.rows_per_second, status.seconds_left) == (speed, left)


def test_times_that_have_not_come_are_null() -> None:
    status = status_of(TableStates(), FIRST)
    assert (status.started, status.updated) == (None, None)
    assert str(status.requested) == "1970-01-01 00:00:01+00:00"

"""When the dump of a schedule is due."""

from datetime import UTC, datetime, timedelta

import pytest

from databus_core.manifest import Manifest, State
from databus_core.settings.dumps import Schedule
from databus_dump_api.schedules import due

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
OFTEN = Schedule.model_validate({"name": "s", "every": "6h"})
NIGHTLY = Schedule.model_validate({"name": "s", "cron": "0 3 * * *"})


def dump(created: datetime, state: State = State.COMPLETE, schedule: str = "s") -> Manifest:
    return Manifest(id=str(created), pipeline="shop", state=state, created=created, schedule=schedule)


@pytest.mark.parametrize(
    ("schedule", "dumps", "time"),
    [
        (OFTEN, [], NOON),
        (OFTEN, [dump(NOON - HOUR, schedule="other"), dump(NOON - HOUR, schedule="")], NOON),
        (OFTEN, [dump(NOON - HOUR)], NOON + 5 * HOUR),
        (OFTEN, [dump(NOON - 100 * HOUR)], NOON - 94 * HOUR),
        (OFTEN, [dump(NOON - HOUR, State.FAILED), dump(NOON - 9 * HOUR)], NOON + 5 * HOUR),
        (OFTEN, [dump(NOON - 100 * HOUR, State.PENDING)], None),
        (OFTEN, [dump(NOON - 100 * HOUR, State.RUNNING)], None),
        (NIGHTLY, [], NOON + 15 * HOUR),
        (NIGHTLY, [dump(NOON - 9 * HOUR)], NOON + 15 * HOUR),
        (NIGHTLY, [dump(NOON - 100 * HOUR)], NOON - 81 * HOUR),
    ],
    ids=[
        "the first at once",
        "other dumps do not count",
        "some time after the last",
        "missed",
        "a failed one counts",
        "not while one is pending",
        "not while one is running",
        "the first at its next time",
        "the time after the last",
        "missed nights",
    ],
)
def test_a_dump_is_due_some_time_after_the_last_one(
    schedule: Schedule, dumps: list[Manifest], time: datetime | None
) -> None:
    assert due(schedule, dumps, started=NOON) == time

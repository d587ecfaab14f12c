"""When the reader starts anew, and when it stops."""

from typing import Literal

import pytest

from databus_binlog import Incident, Position
from databus_core.errors import FatalError, Refusal, SourceRefused
from databus_core.progress import Progress
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.source_connection import source_errors
from databus_reader.baseline import Baseline
from databus_reader.new_start import NewStart
from databus_reader.parking import Parking

PURGED = SourceRefused(Refusal.PURGED, "purged")
PUBLISHED = Progress(Position("0-1-7"), transaction=3)


def new_start(all_tables: Literal["stop", "heal"]) -> NewStart:
    settings = Settings.model_validate(
        {
            "name": "shop",
            "source": {"hosts": ["db1:3306"], "user": "u", "password": "p", "include": ["shop.*"]},
            "kafka": {"bootstrap_servers": ["kafka:9092"]},
            "doubt": {"all": all_tables},
        }
    )
    return NewStart(settings, Parking(settings, Baseline(settings), Health()))


def test_a_new_start_has_no_position_and_keeps_the_ordinal() -> None:
    start = new_start("heal")
    start.plan(PURGED, PUBLISHED)
    assert start.planned
    assert start.progress(PUBLISHED) == Progress(transaction=3, snapshot=True)


def test_a_new_start_is_not_repeated_when_it_is_committed() -> None:
    start = new_start("heal")
    start.plan(PURGED, PUBLISHED)
    committed = Progress(Position("0-1-9"), transaction=3)
    assert start.progress(committed) == committed
    assert not start.planned


@pytest.mark.parametrize(
    ("all_tables", "error", "progress"),
    [
        ("stop", PURGED, PUBLISHED),
        ("heal", SourceRefused(Refusal.BEHIND, "behind"), PUBLISHED),
        ("heal", SourceRefused(Refusal.NO_GTIDS, "no GTIDs"), PUBLISHED),
        ("heal", FatalError("another"), PUBLISHED),
        ("heal", PURGED, Progress()),
    ],
    ids=["by default", "behind", "without GTIDs", "another error", "a first start"],
)
def test_the_reader_stops(all_tables: Literal["stop", "heal"], error: FatalError, progress: Progress) -> None:
    with pytest.raises(type(error), match=str(error)):
        new_start(all_tables).plan(error, progress)


def test_lost_events_concern_all_tables() -> None:
    with pytest.raises(FatalError, match="run `databus pipeline reset --to snapshot`") as caught, source_errors("db1"):
        raise Incident("the server lost events")
    assert caught.value.doubts_all


def test_all_tables_are_not_healed_if_single_ones_are_not() -> None:
    with pytest.raises(ValueError, match="all: heal needs heal: auto"):
        Settings.model_validate({"name": "shop", "doubt": {"all": "heal", "heal": "manual"}})

"""A generation begins with the tables that the publisher has reported in the one before: the reader parks them."""

import time

import pytest
from msgspec.structs import replace

from databus_core.events import Event, StateRecord
from databus_core.runtime import Health
from databus_core.table_states import Backfill, TableDoubt, TableStates, doubt_key, encode
from databus_reader.backfill.states import BackfillStates
from databus_reader.parking import Parking
from unit.reader.backfilled import NAME, settings

OTHER = ("shop", "u")
REPORTED = TableDoubt(
    state="parked", reason="rule_mismatch", text="mend it", file="log.000001", offset=7, since_us=1, reported=True
)
RUNNING = Backfill(id="1", schema="shop", table="t")


class Story:
    """The reader's parking, in one generation after the other."""

    def __init__(self) -> None:
        self.parking = Parking(settings(), None, Health())  # type: ignore[arg-type]
        self.states = BackfillStates(TableStates())

    def generation(self, *requested: Backfill, **doubts: TableDoubt) -> list[Event]:
        """Begin a generation with the doubts about tables that are in Kafka. Return the first events."""
        found = {("shop", table): doubt for table, doubt in doubts.items()}
        self.states = BackfillStates(TableStates({each.id: each for each in requested}, doubts=found))
        self.parking.begin_generation("db1", "server", self.states)
        return self.parking.take_over()

    @property
    def loads(self) -> list[Backfill]:
        return self.states.unfinished()

    def doubt(self, table: str) -> TableDoubt:
        return self.states.doubts["shop", table]

    def begins(self, table: str) -> int:
        """Return in how many seconds a table may be loaded."""
        [load] = [each for each in self.loads if each.table == table]
        begin = self.parking.reports.begin_us(load)
        return begin and round(begin / 1e6 - time.time())


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_reported_table_is_parked_and_loaded_again_and_its_backfill_that_runs_is_given_up(story: Story) -> None:
    events = story.generation(RUNNING, t=REPORTED, u=replace(REPORTED, reported=False))
    doubt = story.states.doubts[NAME]
    assert (doubt.reason, doubt.offset, doubt.reported) == ("rule_mismatch", 7, False)
    assert events[-1] == StateRecord(doubt_key(*NAME), encode(doubt))
    assert [each.id for each in story.loads] == [doubt.backfill] != [RUNNING.id]
    assert NAME in story.parking.reports


def test_a_reported_table_that_is_renamed_later_is_in_doubt_under_its_new_name(story: Story) -> None:
    story.generation(t=REPORTED)
    story.parking.renamed([(NAME, OTHER)])
    assert (sorted(story.states.doubts), [each.name for each in story.loads]) == ([OTHER], [OTHER])
    assert OTHER in story.parking.reports
    assert NAME not in story.parking.reports


def test_a_report_stays_with_a_name_that_another_table_gets_at_the_same_time(story: Story) -> None:
    story.generation(t=REPORTED)
    story.parking.renamed([(NAME, OTHER), (("shop", "v"), NAME)])
    assert sorted(story.states.doubts) == [NAME, OTHER]
    assert NAME in story.parking.reports
    assert OTHER in story.parking.reports


def test_a_reported_table_that_is_dropped_later_is_not_in_doubt(story: Story) -> None:
    story.generation(t=REPORTED)
    story.parking.dropped(NAME)
    assert (story.states.doubts, story.loads) == ({}, [])
    assert NAME not in story.parking.reports


def test_each_report_at_the_same_place_lengthens_the_pause(story: Story) -> None:
    waits = []
    for since in (1, 2, 2, 3):
        story.generation(t=replace(REPORTED, since_us=since))
        [load] = story.loads
        waits.append(load.begin_us and round((load.begin_us - load.requested_us) / 1e6))
    assert waits == [0, 10, 10, 20]


def test_a_load_that_fails_makes_all_tables_with_its_reason_wait_until_one_is_loaded(story: Story) -> None:
    """For instance because the account lost a right: each load that fails costs a generation."""
    mismatch = replace(REPORTED, reason="rule_mismatch")
    refused = replace(REPORTED, reason="topic_refused")
    story.generation(t=refused, u=refused, v=mismatch)
    assert [story.begins(each) for each in "tuv"] == [0, 0, 0]
    story.generation(*story.loads, t=replace(refused, since_us=2), u=story.doubt("u"), v=story.doubt("v"))
    assert [story.begins(each) for each in "tuv"] == [10, 10, 0]
    story.parking.end(("shop", "t"))
    assert story.begins("u") == 0


def test_a_load_that_was_asked_for_does_not_wait(story: Story) -> None:
    story.generation(t=REPORTED)
    story.generation(t=replace(REPORTED, since_us=2))
    assert story.parking.reports.begin_us(RUNNING) == 0

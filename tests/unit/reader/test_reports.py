"""The reader parks the tables that the publisher has reported, as they are named now."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from databus.runtime import Health
from databus.table_states import TableDoubt, TableStates, doubt_key
from databus_reader import parking as module
from databus_reader.backfill.states import BackfillStates
from databus_reader.parking import Parking
from unit.reader.backfilled import NAME, settings

OTHER, GONE = ("shop", "u"), ("shop", "gone")
REPORTED = TableDoubt(
    state="parked", reason="rule_mismatch", text="mend it", file="log.000001", offset=7, since_us=1, reported=True
)


class Story:
    """The reader's parking, on a server that has the tables t and u."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @asynccontextmanager
        async def connect_source(*_: object) -> AsyncIterator[None]:
            yield

        async def read_names(_: object) -> list[tuple[str, str]]:
            return [NAME, OTHER]

        for each in (connect_source, read_names):
            monkeypatch.setattr(module, each.__name__, each)
        self.states = BackfillStates(TableStates())
        self.parking = Parking(settings(), None, Health())  # type: ignore[arg-type]
        self.parking.begin_generation("db1", "server", self.states, lambda: None)

    async def take_over(self, table: tuple[str, str], since: int = 1) -> list[bytes]:
        """Take over a report. Return the keys of the records about doubts."""
        events: list[Any] = await self.parking.take_over(table, replace(REPORTED, since_us=since))
        return [each.key for each in events if each.key.startswith(b'["doubt"')]

    @property
    def loads(self) -> list[tuple[str, str]]:
        return [each.name for each in self.states.unfinished()]


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> Story:
    return Story(monkeypatch)


async def test_a_table_that_was_renamed_meanwhile_is_parked_under_its_new_name(story: Story) -> None:
    story.parking.renamed([(GONE, OTHER)])
    assert await story.take_over(GONE) == [doubt_key(*each) for each in (GONE, GONE, OTHER)]
    assert (sorted(story.states.doubts), story.loads) == ([OTHER], [OTHER])


async def test_a_table_that_is_gone_is_not_parked_but_the_publisher_gets_its_record(story: Story) -> None:
    assert await story.take_over(GONE) == [doubt_key(*GONE)] * 2
    assert (sorted(story.states.doubts), story.loads) == ([], [])


async def test_each_report_at_the_same_place_lengthens_the_pause(story: Story) -> None:
    waits = []
    for since in (1, 2, 2, 3):
        await story.take_over(NAME, since)
        [load] = story.states.unfinished()
        waits.append(load.begin_us and round((load.begin_us - load.requested_us) / 1e6))
    assert waits == [0, 10, 10, 20]

"""The states of backfills: the records that a change writes, and how long ended ones are kept."""

import pytest
from msgspec.structs import replace

from databus_core.events import StateRecord
from databus_core.table_states import (
    Backfill,
    BackfillProgress,
    BackfillState,
    backfill_key,
    decode_states,
    progress_key,
)
from databus_reader.backfill import states as module
from databus_reader.backfill.states import BackfillStates
from unit.reader.backfilled import NAME, states


def backfill(id_: str, table: str = "t") -> Backfill:
    return Backfill(id=id_, schema="shop", table=table)


def test_what_is_reached_is_in_the_record() -> None:
    story = BackfillStates(states(backfill("1")))
    record = story.change(backfill("1"), BackfillProgress(state="running", rows=5))
    assert decode_states([(record.key, record.value)]).progress["1"] == story.progress(backfill("1"))


def test_only_the_latest_ended_backfills_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 2)
    ended = {each: BackfillProgress(state="done") for each in ("1", "2")}
    found = states(*(backfill(each) for each in "1234"), **ended, **{"4": BackfillProgress(state="running")})
    story = BackfillStates(found)
    records = story.end(backfill("3"), "cancelled")
    assert records[1:] == [StateRecord(backfill_key("1"), None), StateRecord(progress_key("1"), None)]
    assert (sorted(found.backfills), sorted(found.progress)) == (["2", "3", "4"], ["2", "3", "4"])


def test_a_table_in_doubt_gives_up_only_its_own_backfills() -> None:
    story = BackfillStates(states(backfill("1"), backfill("2", "u"), backfill("3")))
    assert len(story.give_up(NAME, "doubt")) == 2
    assert [each.id for each in story.unfinished()] == ["2"]
    assert story.progress(backfill("1")).error == "doubt"


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_it_is_logged_that_no_row_is_marked_as_the_last_of_the_snapshot(
    state: BackfillState, caplog: pytest.LogCaptureFixture
) -> None:
    t, u = (replace(backfill(id_, table), cause="snapshot") for id_, table in (("1", "t"), ("2", "u")))
    story = BackfillStates(states(t, u, backfill("3")))
    story.end(backfill("3"), state)
    story.end(t, state)  # the last row of the other table may still be marked
    assert caplog.messages == []
    story.end(u, state)
    [line] = caplog.messages
    assert line.startswith("the snapshot has ended without shop.u, so no record has the marker `last` of Debezium")


def test_healing_is_a_clean_backfill_from_a_time_on() -> None:
    story = BackfillStates(states())
    id_, [record] = story.load_again(NAME, 77)
    [heal] = story.unfinished()
    assert (heal.id, heal.clean, heal.cause, heal.begin_us, heal.name) == (id_, True, "heal", 77, NAME)
    assert decode_states([(record.key, record.value)]).backfills == {id_: heal}

"""RENAME moves doubts and backfills to the table's new name; whatever may have other rows starts over."""

from typing import Any

import pytest
from msgspec.structs import replace

from databus_changes.tables import Rename
from databus_core.runtime import Health
from databus_core.table_states import Backfill, BackfillProgress, TableDoubt, backfill_key, decode_states, encode
from databus_reader.backfill.states import BackfillStates
from databus_reader.parking import Parking
from unit.reader.backfilled import NAME, settings, states

T, U, TMP, FOREIGN = NAME, ("shop", "u"), ("shop", "tmp"), ("club", "member")
LOAD = Backfill(id="1", schema="shop", table="t")
BEGUN = BackfillProgress(state="running", key=("id int", "a b int"), last_key=(b"7", b"7"), rows=7)
PARKED = TableDoubt(state="parked", reason="rollback", text="ROLLBACK", file="log.000001", offset=4, since_us=1)
HEALED = replace(PARKED, backfill="1")
FILLING = replace(HEALED, state="filling")
SWAP = (T, TMP), (U, T), (TMP, U)


class Story:
    def __init__(self, *requested: Backfill, doubts: dict[tuple[str, str], TableDoubt] | None = None, **progress: Any):
        self.kafka = states(*requested, **progress)
        self.kafka.doubts.update(doubts or {})
        self.before = [*self.kafka.backfills]
        self.states = BackfillStates(self.kafka)
        self.health = Health()
        self.looked = 0
        self.parking = Parking(settings(), None, self.health)  # type: ignore[arg-type]
        self.parking.begin_generation("db1", "server", self.states)
        self.parking.follow(self._look)

    def _look(self) -> None:
        self.looked += 1

    def rename(self, *renames: Rename) -> None:
        """Rename, and check that the records are the whole change."""
        before = decode_states([])
        before.backfills, before.progress, before.doubts = (
            {**each} for each in (self.kafka.backfills, self.kafka.progress, self.kafka.doubts)
        )
        for record in self.parking.renamed(renames):
            before.apply(record.key, record.value)  # type: ignore[union-attr]
        assert before == self.kafka

    @property
    def doubts(self) -> dict[tuple[str, str], str]:
        return {table: doubt.state for table, doubt in self.kafka.doubts.items()}

    @property
    def unfinished(self) -> list[tuple[str, str]]:
        return [each.name for each in self.states.unfinished()]

    def follower(self) -> Backfill:
        [new] = self.kafka.backfills.keys() - self.before
        return self.kafka.backfills[new]


@pytest.mark.parametrize("doubt", [PARKED, FILLING])
def test_a_doubt_follows_its_table(doubt: TableDoubt) -> None:
    story = Story(doubts={T: doubt})
    story.rename((T, U))
    assert story.kafka.doubts == {U: replace(doubt, state="parked", backfill="")}
    assert story.parking.leaves_out(U)
    assert (story.health.degraded, story.looked) == ("shop.u is parked", 1)


@pytest.mark.parametrize(("doubt", "progress"), [(HEALED, {}), (FILLING, {"1": BEGUN})])
def test_the_backfill_that_heals_a_table_follows_it(doubt: TableDoubt, progress: dict[str, BackfillProgress]) -> None:
    story = Story(replace(LOAD, clean=True, cause="heal", begin_us=5), doubts={T: doubt}, **progress)
    story.rename((T, U))
    heal = story.follower()
    assert (heal.name, heal.clean, heal.cause, heal.begin_us) == (U, True, "heal", 5)
    assert story.kafka.doubts[U].backfill == heal.id
    assert story.unfinished == [U]
    ended = story.states.progress(LOAD)
    assert (ended.state, ended.error) == ("failed", f"the table was renamed to shop.u, which backfill {heal.id} loads")


@pytest.mark.parametrize("state", ["running", "paused"])
def test_a_backfill_that_has_begun_follows_its_table_from_the_first_row(state: Any) -> None:
    story = Story(LOAD, **{"1": replace(BEGUN, state=state, has_emptied=True)})
    story.rename((T, U))
    reached = story.states.progress(story.follower())
    assert (reached.state, reached.last_key, reached.rows) == ("waiting", None, 0)
    assert reached.starts_over
    assert reached.has_emptied


def test_a_backfill_that_is_to_start_over_follows_a_second_rename() -> None:
    story = Story(LOAD, **{"1": replace(BEGUN, has_emptied=True)})
    story.rename((T, TMP))
    first = story.follower()
    story.before.append(first.id)
    story.rename((TMP, U))
    progress = story.kafka.progress[story.follower().id]
    assert (progress.has_emptied, progress.last_key) == (True, None)


def test_a_request_that_has_not_begun_follows_as_it_is() -> None:
    story = Story(replace(LOAD, where="id > 5", wanted="pause"))
    story.rename((T, U))
    found = story.follower()
    assert (found.name, found.where, found.wanted) == (U, "id > 5", "pause")
    assert not story.states.progress(found).starts_over


def test_a_cancel_that_comes_too_late_for_the_old_name_reaches_the_new_one() -> None:
    """The client has seen the request as it was before the statement."""
    story = Story(LOAD, **{"1": BEGUN})
    story.rename((T, TMP))
    story.before.append(story.follower().id)
    story.rename((TMP, U))
    last = story.follower()
    assert not story.states.is_cancelled(last)
    story.states.request(backfill_key(LOAD.id), encode(replace(LOAD, wanted="cancel")))
    assert story.states.is_cancelled(last)


def test_a_cancel_under_a_name_that_another_table_has_taken_is_only_for_that_table() -> None:
    story = Story(LOAD, **{"1": BEGUN})
    story.rename(*SWAP)
    story.states.request(backfill_key(LOAD.id), encode(replace(LOAD, wanted="cancel")))
    assert story.states.is_cancelled(story.kafka.backfills[LOAD.id])
    assert not story.states.is_cancelled(story.follower())


def test_a_table_that_is_renamed_to_a_name_that_is_not_captured_is_neither_in_doubt_nor_loaded() -> None:
    story = Story(LOAD, doubts={T: HEALED}, **{"1": BEGUN})
    story.rename((T, FOREIGN))
    assert (story.doubts, story.unfinished, story.health.degraded) == ({}, [], "")
    assert story.states.progress(LOAD).error == "the table was renamed to club.member, which is not captured"


def test_tables_that_are_swapped_are_both_in_doubt() -> None:
    """The rows under each name are in doubt for consumers by name, and those of each table for all others."""
    story = Story(LOAD, doubts={T: HEALED})
    story.rename(*SWAP)
    assert story.doubts == {T: "parked", U: "parked"}
    assert story.kafka.doubts[U].backfill == story.follower().id
    assert sorted(story.unfinished) == [T, U]


def test_each_of_two_tables_in_doubt_keeps_its_own_doubt() -> None:
    story = Story(doubts={T: PARKED, U: replace(PARKED, text="other")})
    story.rename(*SWAP)
    assert {table: doubt.text for table, doubt in story.kafka.doubts.items()} == {U: "ROLLBACK", T: "other"}


def test_a_table_that_replaces_one_in_doubt_stays_in_doubt() -> None:
    """As gh-ost does it with tables that are not captured."""
    story = Story(LOAD, doubts={T: HEALED})
    story.rename((T, FOREIGN), (("club", "ghost"), T))
    assert (story.doubts, story.unfinished) == ({T: "parked"}, [T])
    assert story.kafka.progress == {}  # it has not begun, so it need not start over


def test_a_backfill_over_which_another_table_is_renamed_starts_over() -> None:
    story = Story(LOAD, **{"1": BEGUN})
    story.rename((T, FOREIGN), (("club", "ghost"), T))
    reached = story.states.progress(LOAD)
    assert (reached.state, reached.last_key, reached.starts_over) == ("waiting", None, True)
    assert story.unfinished == [T]


def test_other_tables_are_not_concerned() -> None:
    story = Story(LOAD, doubts={T: HEALED}, **{"1": BEGUN})
    assert story.parking.renamed([(U, TMP)]) == []
    assert story.parking.renamed([(T, TMP), (TMP, T)]) == []
    assert story.looked == 0


@pytest.mark.parametrize(("columns", "starts_over"), [({"id"}, True), ({"a b"}, True), ({"b", "i", "int"}, False)])
@pytest.mark.parametrize("state", ["running", "paused"])
def test_a_backfill_starts_over_if_a_column_of_its_key_may_have_other_values(
    columns: set[str], starts_over: bool, state: Any
) -> None:
    story = Story(LOAD, replace(LOAD, id="2", table="u"), **{each: replace(BEGUN, state=state) for each in "12"})
    assert len(story.parking.columns_removed(T, columns)) == starts_over
    assert (story.states.progress(LOAD).last_key is None) is starts_over
    assert story.kafka.progress["2"].last_key


def test_a_table_that_is_dropped_is_neither_in_doubt_nor_loaded() -> None:
    story = Story(LOAD, doubts={T: FILLING}, **{"1": replace(BEGUN, has_emptied=True)})
    assert len(story.parking.dropped(T)) == 2
    assert (story.doubts, story.unfinished, story.looked) == ({}, [], 1)
    assert story.states.progress(LOAD).error == "the table was dropped"
    assert story.parking.dropped(T) == []

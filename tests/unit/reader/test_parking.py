"""Which tables a doubt parks, what is left out of the stream, and when a parked table is loaded again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from databus_changes.doubts import Doubt, Reason
from databus_core.errors import FatalError, GenerationLost, SourceNotReady
from databus_core.events import StateRecord
from databus_core.runtime import Health
from databus_core.skips import Skip
from databus_core.table_states import Backfill, doubt_key, encode
from databus_reader import parking as module
from databus_reader.backfill.states import BackfillStates
from databus_reader.parking import Parking
from unit.reader.backfilled import NAME, PLACE, settings, states

OTHER, FOREIGN = ("shop", "u"), ("club", "member")
HALF = Doubt(reason=Reason.ROLLBACK, text="ROLLBACK", advice="fix it", file="log.000001", offset=700,
             tables=frozenset([NAME]), whole_transaction=True)  # fmt: skip
DOUBT = replace(HALF, reason=Reason.INCOMPLETE_ROW_IMAGE, whole_transaction=False)


class UnreadBaseline:
    """No table was missing before."""

    def has_read(self, error: Exception) -> bool:
        return False


class Story:
    def __init__(self, *requested: Backfill, **doubt: object) -> None:
        self.health = Health()
        self.parking = Parking(settings(doubt=doubt), UnreadBaseline(), self.health)  # type: ignore[arg-type]
        self.kafka = states(*requested)
        self.looked = 0
        self.begin("db1")

    def begin(self, host: str) -> None:
        self.states = BackfillStates(self.kafka)
        self.parking.begin_generation(host, f"server of {host}", self.states)
        self.parking.follow(self._look)

    def _look(self) -> None:
        self.looked += 1

    async def park(self, doubt: Doubt = DOUBT) -> list[Any]:
        self.parking.report(doubt)
        return await self.parking.park()

    @property
    def parked(self) -> list[tuple[str, str]]:
        return sorted(self.states.doubts)

    def waits(self) -> float:
        """Return for how many seconds the latest backfill waits."""
        latest = self.states.unfinished()[-1]
        return latest.begin_us and round((latest.begin_us - self.states.doubts[NAME].since_us) / 1e6)


async def test_a_doubt_parks_its_table_and_loads_it_again() -> None:
    story = Story()
    records = await story.park()
    assert {type(each) for each in records} == {StateRecord}
    assert records[-1].key == doubt_key(*NAME)
    doubt, [heal] = story.states.doubts[NAME], story.states.unfinished()
    assert (doubt.state, doubt.reason, doubt.file, doubt.offset) == (
        "parked", "incomplete_row_image", "log.000001", 700,
    )  # fmt: skip
    assert (heal.id, heal.clean, heal.cause) == (doubt.backfill, True, "heal")
    assert story.parking.leaves_out(NAME)
    assert not story.parking.leaves_out(OTHER)
    assert (story.health.degraded, story.looked) == ("shop.t is parked", 1)
    assert await story.parking.park() == []


async def test_a_parked_table_is_not_parked_again() -> None:
    story = Story()
    await story.park()
    assert await story.park() == []


async def test_a_further_doubt_loads_a_table_again_whose_load_has_failed() -> None:
    story = Story()
    await story.park()
    [failed] = story.states.unfinished()
    story.states.end(failed, "failed", "it has no tablespace")
    assert await story.park(replace(DOUBT, offset=DOUBT.offset + 1))
    [again] = story.states.unfinished()
    assert story.states.doubts[NAME].backfill == again.id != failed.id
    assert story.waits() == 10


async def test_tables_that_are_not_captured_are_not_parked() -> None:
    story = Story()
    await story.park(replace(DOUBT, tables=frozenset([FOREIGN, OTHER])))
    assert story.parked == [OTHER]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A server that has the tables t, u and one that is not captured. Return the hosts that were asked."""
    asked: list[str] = []

    @asynccontextmanager
    async def connect_source(source: object, host: str) -> AsyncIterator[None]:
        asked.append(host)
        yield

    async def read_names(session: object) -> list[tuple[str, str]]:
        return [NAME, OTHER, FOREIGN]

    async def narrowed(doubt: Doubt, *_: object) -> Doubt:
        return replace(doubt, tables=frozenset([OTHER]), schemas=frozenset())

    async def require_select(*_: object) -> None: ...

    for each in (connect_source, read_names, narrowed, require_select):
        monkeypatch.setattr(module, each.__name__, each)
    return asked


async def test_a_doubt_that_names_no_table_parks_all_captured_tables(server: list[str]) -> None:
    story = Story()
    await story.park(replace(DOUBT, tables=frozenset()))
    assert (story.parked, server) == ([NAME, OTHER], ["db1"])


async def test_a_doubt_that_names_no_table_parks_none_if_none_is_captured(
    server: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that existed then is dropped later in the binlog, which is published."""

    async def read_names(_: object) -> list[tuple[str, str]]:
        return [FOREIGN]

    monkeypatch.setattr(module, "read_names", read_names)
    assert await Story().park(replace(DOUBT, tables=frozenset())) == []


async def test_a_doubt_that_names_no_table_stops_the_reader_if_the_account_may_not_see_any(
    server: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_names(_: object) -> list[tuple[str, str]]:
        return []

    async def require_select(*_: object) -> None:
        raise SourceNotReady("user 'u' lacks SELECT on shop.*: grant it")

    monkeypatch.setattr(module, "read_names", read_names)
    monkeypatch.setattr(module, "require_select", require_select)
    with pytest.raises(SourceNotReady, match=r"^ROLLBACK: .* not known: user 'u' lacks SELECT on .*: grant it$"):
        await Story().park(replace(DOUBT, tables=frozenset()))


async def test_a_statement_parks_only_what_it_may_have_changed(server: list[str]) -> None:
    story = Story()
    await story.park(replace(DOUBT, tables=frozenset(), schemas=frozenset(["shop"]), targets=frozenset([OTHER])))
    assert (story.parked, server) == ([OTHER], ["db1"])


@pytest.mark.parametrize(
    "reason", [Reason.ROWS_OUTSIDE_TRANSACTION, Reason.UNREADABLE_STATEMENT, Reason.UNDESCRIBED_TABLE]
)
async def test_a_doubt_that_no_backfill_ends_stops_the_reader(reason: Reason) -> None:
    with pytest.raises(FatalError, match="ROLLBACK; fix it"):
        Story().parking.report(replace(DOUBT, reason=reason))


async def test_the_settings_can_stop_the_reader_at_any_doubt() -> None:
    for doubt in (DOUBT, HALF):
        with pytest.raises(FatalError, match="fix it"):
            Story(on_doubt="stop").parking.report(doubt)


async def test_the_reader_stops_before_a_transaction_of_which_a_part_was_sent() -> None:
    """Otherwise what precedes it, in the same Kafka transaction, would not be published."""
    story = Story(on_doubt="stop")
    story.parking.open("", PLACE)
    story.parking.begin(PLACE)
    with pytest.raises(GenerationLost, match="the next generation stops before the transaction"):
        story.parking.report(DOUBT)
    story.begin("db2")  # where another transaction is at this place
    story.parking.open("", PLACE)
    story.begin("db1")
    with pytest.raises(FatalError, match="fix it"):
        story.parking.open("", PLACE)
    story.parking.begin(PLACE)
    with pytest.raises(FatalError, match="fix it"):  # and does not end one generation after the other
        story.parking.report(DOUBT)


async def test_an_unknown_table_is_looked_up_before_it_is_parked() -> None:
    story = Story()
    unknown = replace(DOUBT, reason=Reason.UNKNOWN_TABLE)
    with pytest.raises(FatalError):
        story.parking.report(unknown)
    UnreadBaseline.has_read, before = lambda *_: True, UnreadBaseline.has_read
    try:
        await story.park(unknown)
    finally:
        UnreadBaseline.has_read = before
    assert story.parked == [NAME]


async def test_a_transaction_in_doubt_ends_the_generation_and_is_left_out_by_the_next_one() -> None:
    story = Story()
    assert not story.parking.begin(PLACE)
    with pytest.raises(GenerationLost, match="leaves the transaction out"):
        story.parking.report(HALF)
    assert (await story.parking.park(), story.parked) == ([], [])
    story.begin("db1")
    assert story.parking.begin(PLACE)
    assert len(await story.parking.park()) == 2
    assert story.parked == [NAME]


async def test_a_verdict_is_for_one_place_of_one_host() -> None:
    story = Story()
    story.parking.begin(PLACE)
    with pytest.raises(GenerationLost):
        story.parking.report(HALF)
    story.begin("db1")
    assert not story.parking.begin((PLACE[0], PLACE[1] + 10))
    assert not story.parking.begin(("log.000002", PLACE[1]))
    story.begin("db2")
    assert not story.parking.begin(PLACE)
    assert await story.parking.park() == []


async def test_groups_need_attention_until_what_was_decided_about_one_is_passed() -> None:
    story, after = Story(), (PLACE[0], PLACE[1] + 10)
    assert not story.parking.may_concern(None)
    story.parking.begin(PLACE)
    with pytest.raises(GenerationLost):
        story.parking.report(HALF)
    story.begin("db1")
    assert [story.parking.may_concern(place) for place in (None, PLACE, after)] == [True, True, False]
    story.begin("db2")
    assert not story.parking.may_concern(PLACE)
    story.parking.report(DOUBT)
    assert story.parking.may_concern(after)
    await story.parking.park()
    assert not story.parking.may_concern(after)
    skip = Skip(server="server of db2", file="log.000001", offset=500, requested_us=1)
    story.kafka.apply(skip.key, encode(skip))
    assert story.parking.may_concern(after)


async def test_doubts_of_a_generation_that_ended_are_not_parked_by_the_next_one() -> None:
    story = Story()
    story.parking.report(DOUBT)
    story.begin("db1")
    assert await story.parking.park() == []


async def test_a_table_that_is_parked_again_and_again_waits_longer_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000 * 10**9
    monkeypatch.setattr(module.time, "time_ns", lambda: now)
    story, waits = Story(), []
    for number in range(12):
        await story.park(replace(DOUBT, offset=number))
        waits.append(story.waits() if story.states.unfinished()[-1].begin_us > now // 1000 else 0)
        story.parking.end(NAME)
    assert waits == [0, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]
    now += 7300 * 10**9
    await story.park(replace(DOUBT, offset=99))
    assert story.states.unfinished()[-1].begin_us == now // 1000


async def test_a_doubt_that_is_reported_again_because_the_generation_was_lost_waits_no_longer() -> None:
    story = Story()
    for _ in range(3):
        story.kafka = states()
        story.begin("db1")
        await story.park()
        assert story.waits() == 0
        story.parking.end(NAME)
        await story.park(replace(DOUBT, offset=900))
        assert story.waits() == 10


async def test_each_table_has_its_own_pause() -> None:
    story = Story()
    await story.park()
    await story.park(replace(DOUBT, tables=frozenset([OTHER])))
    assert {each.begin_us == story.states.doubts[each.name].since_us for each in story.states.unfinished()} <= {True}


async def test_a_table_in_doubt_ends_its_backfill_and_begins_another() -> None:
    old = Backfill(id="1", schema="shop", table="t", where="id > 5")
    story = Story(old)
    await story.park()
    assert story.states.progress(old).state == "failed"
    assert [each.cause for each in story.states.unfinished()] == ["heal"]


async def test_healing_can_be_left_to_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    story = Story(heal="manual")
    await story.park()
    assert (story.states.doubts[NAME].backfill, story.states.unfinished()) == ("", [])
    assert "run `databus backfill start shop.t --clean`" in caplog.text


async def test_a_new_start_deletes_the_requests_to_skip_a_transaction() -> None:
    """It is at another position, and the binlog may have been reset: the same place may be another transaction."""
    story = Story()
    skip = Skip(server="server of db1", file="log.000001", offset=500, requested_us=1)
    story.kafka.apply(skip.key, encode(skip))
    events = story.parking.park_all([NAME], "purged", PLACE)
    assert StateRecord(skip.key, None) in events
    assert not story.parking.open("", PLACE)


async def test_a_new_start_forgets_what_was_decided_about_transactions() -> None:
    story = Story()
    story.parking.begin(PLACE)
    with pytest.raises(GenerationLost):
        story.parking.report(HALF)
    assert story.parking.begin(PLACE)
    story.parking.park_all([NAME], "purged", PLACE)
    assert story.parking.begin(PLACE) is None


async def test_an_emptied_table_is_parked_until_somebody_asks_for_it() -> None:
    story = Story()
    story.parking.park_incomplete(Backfill(id="1", schema="shop", table="t", clean=True), PLACE, emptied=True)
    assert (story.states.doubts[NAME].reason, story.states.unfinished()) == ("incomplete_backfill", [])


async def test_a_table_that_is_filled_is_published_and_in_doubt_until_the_end() -> None:
    story = Story()
    assert story.parking.fill(NAME, "1") == story.parking.end(NAME) == []
    await story.park()
    [record] = story.parking.fill(NAME, "9")
    assert record.key == doubt_key(*NAME)
    assert not story.parking.leaves_out(NAME)
    assert (story.states.doubts[NAME].state, story.states.doubts[NAME].backfill) == ("filling", "9")
    assert story.health.degraded == "shop.t is filling"
    assert story.parking.end(NAME) == [StateRecord(doubt_key(*NAME), None)]
    assert (story.parked, story.health.degraded) == ([], "")


async def test_the_doubt_about_a_table_that_is_not_captured_any_more_ends_with_its_load() -> None:
    story = Story()
    await story.park(replace(DOUBT, tables=frozenset([NAME, OTHER])))
    captures_one = settings(source={"include": ["shop.t"]})
    story.parking = Parking(captures_one, UnreadBaseline(), story.health)  # type: ignore[arg-type]
    story.parking.begin_generation("db1", "server", story.states)
    events = story.parking.excluded()
    assert events[-1] == StateRecord(doubt_key(*OTHER), None)
    assert story.parked == [NAME]
    assert [each.name for each in story.states.unfinished()] == [NAME]
    assert story.health.degraded == "shop.t is parked"

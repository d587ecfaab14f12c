"""The backfills that nobody has to request: at the start of a pipeline, and of tables that are captured later."""

import pytest
from msgspec.structs import replace

from databus_binlog import Position
from databus_core.events import StateRecord
from databus_core.progress import Progress
from databus_core.table_states import CAPTURED_KEY, TableStates, decode_states
from databus_reader.backfill import automatic
from databus_reader.backfill.automatic import add_backfills
from unit.reader.backfilled import TABLE, settings

NEW, OLD = Progress(), Progress(position=Position("", "log.000001", 4))
SNAPSHOT, NEW_TABLES = {"reader": {"start": "snapshot"}}, {"backfill": {"new_tables": True}}
BEFORE = (["shop.t"], [])
NOW = (["shop.*"], [])


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server with the tables shop.t, shop.u and club.member."""

    async def read_tables(_: object) -> list[object]:
        return [TABLE, replace(TABLE, name="u"), replace(TABLE, schema="club", name="member")]

    monkeypatch.setattr(automatic, "read_tables", read_tables)


async def add(
    progress: Progress, before: tuple[list[str], list[str]] | None = None, **sections: object
) -> tuple[list[tuple[str, str]], TableStates]:
    """Return table and cause of the backfills that are added, and the states in Kafka afterwards."""
    found = TableStates(captured=before)
    records = await add_backfills(settings(**sections), None, found, progress)  # type: ignore[arg-type]
    assert all(isinstance(each, StateRecord) for each in records)
    kafka = decode_states([(each.key, each.value) for each in records])
    assert kafka.backfills == found.backfills
    if records:
        assert records[0].key == CAPTURED_KEY
        assert kafka.captured == found.captured
    return [(each.table, each.cause) for each in found.unfinished()], kafka


async def test_a_pipeline_that_starts_with_a_snapshot_loads_all_captured_tables() -> None:
    added, kafka = await add(NEW, **SNAPSHOT)
    assert added == [("t", "snapshot"), ("u", "snapshot")]
    assert kafka.captured == NOW


@pytest.mark.parametrize("progress", [NEW, OLD])
async def test_otherwise_it_only_remembers_what_is_captured(progress: Progress) -> None:
    added, kafka = await add(progress)
    assert (added, kafka.captured) == ([], NOW)


async def test_a_pipeline_that_has_begun_takes_no_snapshot() -> None:
    assert (await add(OLD, **SNAPSHOT))[0] == []


async def test_a_reset_can_ask_for_a_snapshot_whatever_the_settings_say() -> None:
    assert len((await add(Progress(snapshot=True)))[0]) == 2


async def test_tables_that_are_captured_later_are_loaded_if_the_settings_say_so() -> None:
    assert (await add(OLD, BEFORE, **NEW_TABLES))[0] == [("u", "new_table")]
    assert (await add(OLD, BEFORE))[0] == []


async def test_consumers_empty_a_table_of_which_they_may_have_rows() -> None:
    """A table that is captured later may have been captured before."""
    after_reset = replace(NEW, transaction=5)
    cases = ((OLD, BEFORE, NEW_TABLES), (after_reset, None, SNAPSHOT), (NEW, None, SNAPSHOT))
    cleaned = []
    for progress, before, sections in cases:
        _, kafka = await add(progress, before, **sections)
        cleaned.append({each.clean for each in kafka.backfills.values()})
    assert cleaned == [{True}, {True}, {False}]


async def test_nothing_is_loaded_twice() -> None:
    assert (await add(OLD, NOW, **NEW_TABLES))[0] == []
    assert (await add(NEW, NOW, **SNAPSHOT))[0] == []


async def test_what_was_captured_before_is_not_guessed() -> None:
    assert (await add(OLD, None, **NEW_TABLES))[0] == []


async def test_tables_without_a_rule_are_not_loaded() -> None:
    routes = {"publisher": {"routes": [{"match": ["shop.u"]}]}}
    assert (await add(NEW, **SNAPSHOT, **routes))[0] == [("u", "snapshot")]

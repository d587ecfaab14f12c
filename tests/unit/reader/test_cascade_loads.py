"""Which tables are loaded again after changes of parents, and how often."""

import msgspec
import pytest

from databus_core.events import Action, Begin, Column, RowsEvent, SnapshotTruncate, StateRecord, Table
from databus_core.settings import Settings
from databus_core.table_states import BackfillProgress, TableDoubt, TableStates
from databus_reader.backfill.pauses import Pauses
from databus_reader.backfill.states import BackfillStates
from databus_reader.cascade_loads import CascadeLoads

SETTINGS = Settings.model_validate(
    {
        "name": "shop",
        "source": {"hosts": ["db1:3306"], "user": "u", "password": "p", "include": ["shop.*"]},
        "kafka": {"bootstrap_servers": ["kafka:9092"]},
        "doubt": {"cascades": "heal"},
    }
)
PARENT = Table(schema="shop", name="p", columns=(Column(name="id", type="int", raw_type="int"),), primary_key=(0,))
DELETE = RowsEvent(PARENT.fingerprint, Action.DELETE, 0, 0, 0, msgspec.Raw(msgspec.msgpack.encode([[b"1"]])), None)


def begin(start: int) -> Begin:
    return Begin(1, "", "log.000001", 1, 1, 0, start, start + 10)


class Database:
    """Answers the queries of `begin` as MariaDB does that has the foreign key."""

    async def query(self, text: str, *_: object) -> list[tuple[object, ...]]:
        if text.startswith("SHOW CREATE"):
            line = "CONSTRAINT `k` FOREIGN KEY (`p`) REFERENCES `p` (`id`) ON DELETE CASCADE"
            return [("c", f"CREATE TABLE `c` (\n  {line}\n)")]
        return [] if text.startswith("SHOW GLOBAL") else [("shop", "c")]


@pytest.fixture
def found() -> TableStates:
    return TableStates()


@pytest.fixture
async def loads(found: TableStates) -> CascadeLoads:
    tables = {PARENT.fingerprint: PARENT}
    loads = CascadeLoads(SETTINGS, "db1:3306", BackfillStates(found), tables, Pauses(), lambda: None)
    await loads.begin(Database())
    return loads


async def test_one_load_that_has_not_begun_is_enough(loads: CascadeLoads, found: TableStates) -> None:
    first, record, *more = await loads.follow([DELETE, DELETE])
    assert (first, more) == (DELETE, [DELETE])
    assert isinstance(record, StateRecord)
    assert [(each.name, each.clean, each.cause) for each in found.backfills.values()] == [(("shop", "c"), True, "heal")]


async def test_only_changes_of_parents_concern_it(loads: CascadeLoads) -> None:
    assert [loads.concerns(("shop", name)) for name in ("p", "c")] == [True, False]


async def test_a_load_that_has_begun_needs_another_one_later(loads: CascadeLoads, found: TableStates) -> None:
    await loads.follow([begin(4), DELETE])
    [first] = found.backfills.values()
    found.progress[first.id] = BackfillProgress(state="running")
    await loads.follow([begin(100), DELETE, DELETE])
    [second] = found.backfills.keys() - {first.id}
    assert found.backfills[second].begin_us >= first.begin_us + 10_000_000


async def test_a_change_that_is_read_again_because_the_generation_was_lost_waits_no_longer(
    loads: CascadeLoads, found: TableStates
) -> None:
    begun = []
    for _ in range(3):
        found.backfills.clear()
        await loads.follow([begin(100), DELETE])
        begun += [each.begin_us - each.requested_us for each in found.backfills.values()]
    assert max(begun) < 1_000_000


async def test_a_parked_child_is_loaded_anyway(loads: CascadeLoads, found: TableStates) -> None:
    found.doubts["shop", "c"] = doubt("parked")
    assert await loads.follow([DELETE]) == [DELETE]


@pytest.mark.parametrize(("table", "loaded"), [("p", True), ("c", False)])
async def test_children_are_loaded_after_a_parent_was_in_doubt(
    loads: CascadeLoads, found: TableStates, table: str, loaded: bool
) -> None:
    found.doubts["shop", table] = doubt("filling")
    await loads.follow([SnapshotTruncate(PARENT.fingerprint)])
    assert bool(found.backfills) == loaded


def doubt(state: str) -> TableDoubt:
    return msgspec.convert(
        {"state": state, "reason": "rollback", "text": "", "file": "log.1", "offset": 4, "since_us": 1}, TableDoubt
    )

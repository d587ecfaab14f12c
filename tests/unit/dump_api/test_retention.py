"""Which dumps retention deletes, while clients may delete them, too."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from databus_core.events import Table
from databus_core.manifest import Manifest, State
from databus_core.settings import Settings
from databus_dump_api.dumps import DumpManager
from databus_dump_api.leases import Leases
from databus_dump_api.store import DumpStore


@pytest.fixture
async def store(tmp_path: Path) -> DumpStore:
    """Three complete dumps: 0 is the oldest."""
    store = DumpStore(tmp_path)
    for number in range(3):
        created = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
        await store.save(Manifest(id=str(number), pipeline="shop", state=State.COMPLETE, created=created, tables=[]))
    return store


class _NoLeases(Leases):
    """No dump is leased. While retention asks for dump `deletes_another`, a client deletes dump 1."""

    manager: DumpManager
    deletes_another = ""

    def __init__(self) -> None: ...

    async def is_leased(self, dump: str) -> bool:
        if dump == self.deletes_another:
            await self.manager.delete("1")
        return False


async def test_a_client_may_delete_a_dump_that_retention_is_about_to_delete(store: DumpStore) -> None:
    leases = _NoLeases()
    leases.deletes_another = "0"
    settings = Settings.model_validate({"name": "shop", "dumps": {"keep": 1}})
    leases.manager = DumpManager(settings, store, leases)
    await leases.manager._delete_expired()
    assert [manifest.id for manifest in store.newest_first()] == ["2"]


@dataclass
class Taken:
    """A dump, by its tables and what was requested; the tables are those of schema `shop`."""

    tables: str
    requested: tuple[str, ...] | None = None
    state: State = State.COMPLETE


@pytest.mark.parametrize(
    ("dumps", "kept"),
    [
        ([Taken("a b")] + [Taken("a", ("shop.a",))] * 3, [0, 2, 3]),
        ([Taken("a b"), Taken("a b", ("shop.b", "shop.a")), Taken("a b", ("shop.a", "shop.b"))], [1, 2]),
        ([Taken("a"), Taken("a b"), Taken("a b c")], [1, 2]),
        ([Taken("a", state=State.FAILED)] + [Taken("a")] * 2, [1, 2]),
        ([Taken("a")] + [Taken("a", state=State.FAILED)] * 3, [0, 2, 3]),
        ([Taken("a")] * 2 + [Taken("a", state=State.PENDING)], [0, 1, 2]),
    ],
    ids=[
        "dumps of one table do not replace one of two tables",
        "the same tables",
        "all tables, while tables are created",
        "complete dumps replace a failed one",
        "failed dumps do not replace a complete one",
        "a pending dump replaces none",
    ],
)
async def test_the_newest_dumps_of_each_set_of_tables_are_kept(
    tmp_path: Path, dumps: list[Taken], kept: list[int]
) -> None:
    store = DumpStore(tmp_path)
    for number, dump in enumerate(dumps):
        created = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
        tables = tuple(Table(schema="shop", name=name, columns=()) for name in dump.tables.split())
        await store.save(
            Manifest(
                id=str(number), pipeline="shop", state=dump.state, created=created,
                requested=dump.requested, tables=tables,
            )
        )  # fmt: skip
    leases = _NoLeases()
    leases.manager = DumpManager(Settings.model_validate({"name": "shop", "dumps": {"keep": 2}}), store, leases)
    await leases.manager._delete_expired()
    assert sorted(int(manifest.id) for manifest in store.newest_first()) == kept

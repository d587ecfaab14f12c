"""Retention deletes old dumps while clients may delete them, too."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from databus.manifest import Manifest, State
from databus.settings import Settings
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
    """No dump is leased. While retention asks for dump 0, a client deletes dump 1."""

    manager: DumpManager

    def __init__(self) -> None: ...

    async def is_leased(self, dump: str) -> bool:
        if dump == "0":
            await self.manager.delete("1")
        return False


async def test_a_client_may_delete_a_dump_that_retention_is_about_to_delete(store: DumpStore) -> None:
    leases = _NoLeases()
    settings = Settings.model_validate({"name": "shop", "dumps": {"keep": 1}})
    leases.manager = DumpManager(settings, store, leases)
    await leases.manager._delete_expired()
    assert [manifest.id for manifest in store.newest_first()] == ["2"]

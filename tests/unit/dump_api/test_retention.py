"""Retention deletes old dumps while clients may delete them, too."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import AsyncMock, create_autospec

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


async def test_a_client_may_delete_a_dump_that_retention_is_about_to_delete(store: DumpStore) -> None:
    leases = create_autospec(Leases, instance=True)
    manager = DumpManager(Settings.model_validate({"name": "shop", "dumps": {"keep": 1}}), store, leases)

    async def is_leased(dump: str) -> bool:
        if dump == "0":  # retention deletes dump 0; meanwhile a client deletes dump 1
            await manager.delete("1")
        return False

    leases.is_leased = AsyncMock(side_effect=is_leased)
    await manager._delete_expired()
    assert [manifest.id for manifest in store.newest_first()] == ["2"]

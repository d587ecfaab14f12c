"""The worker of dump-api after an interruption, and when the storage cannot be written."""

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from common.waiting import cancelled, eventually
from databus_core.manifest import Manifest, State
from databus_core.redis_connection import redis_client
from databus_core.settings import Settings
from databus_dump_api.dumps import DumpManager
from databus_dump_api.leases import Leases
from databus_dump_api.problems import StorageUnavailable
from databus_dump_api.store import DumpStore

SETTINGS = Settings(name="shop")


def manifest(state: State) -> Manifest:
    return Manifest(id="d", pipeline="shop", state=state, created=datetime.now(UTC))


def manager(store: DumpStore) -> DumpManager:
    return DumpManager(SETTINGS, store, Leases(redis_client(SETTINGS.redis), "shop", ttl=60))


async def test_a_dump_whose_worker_was_cancelled_is_failed_by_the_next_one(tmp_path: Path) -> None:
    store = DumpStore(tmp_path)
    await store.save(manifest(State.RUNNING))
    dumps = manager(store)
    worker = asyncio.create_task(dumps.work())

    async def failed() -> bool:
        return dumps.get("d").state is State.FAILED

    await eventually(failed)
    assert "it was interrupted" in (dumps.get("d").error or "")
    await cancelled(worker)


async def test_a_pending_dump_stays_pending_if_its_manifest_cannot_be_written(tmp_path: Path) -> None:
    store = DumpStore(tmp_path)
    await store.save(manifest(State.PENDING))
    shutil.rmtree(tmp_path / "d")
    (tmp_path / "d").write_text("a file instead of the folder")
    dumps = manager(store)
    with pytest.raises(StorageUnavailable, match=r"d/manifest\.json: File exists \(check dumps\.storage\)"):
        await dumps.work()
    assert dumps.get("d").state is State.PENDING

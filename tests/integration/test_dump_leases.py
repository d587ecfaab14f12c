"""Leases of dumps: what is being read is not deleted, by a request or by retention."""

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from common.connections import Execute
from common.waiting import eventually
from databus_core.manifest import Manifest, State
from databus_core.names import dump_deletion_key, lease_key
from databus_core.redis_connection import redis_client
from databus_dump_api.dumps import DumpManager
from databus_dump_api.folder_store import FolderStore
from databus_dump_api.leases import Leases
from databus_dump_api.owners import Owners
from databus_dump_api.problems import Problem
from integration.dump_api import Api, path_of

pytestmark = pytest.mark.mysql_in_slow


async def test_a_leased_dump_cannot_be_deleted(api: Api, dump: dict[str, Any], tmp_path: Path) -> None:
    path = f"/v1/dumps/{dump['id']}"
    taken = await api.post(f"{path}/leases")
    assert (taken.status_code, taken.json()["expires_in"]) == (201, 60)
    lease = taken.headers["Location"]
    refused = await api.delete(path)
    assert (refused.status_code, refused.headers["Content-Type"]) == (409, "application/problem+json")
    assert "is being read" in refused.json()["detail"]
    assert (await api.put(lease)).status_code == 200
    assert (await api.delete(lease)).status_code == 204
    assert (await api.put(lease)).status_code == 404
    assert (await api.delete(path)).status_code == 204
    assert (await api.get(path)).status_code == 404
    assert not (tmp_path / dump["id"]).exists()


async def test_a_dump_can_be_deleted_once_its_lease_has_expired(api: Api, dump: dict[str, Any]) -> None:
    path = f"/v1/dumps/{dump['id']}"
    lease = (await api.post(f"{path}/leases")).json()["lease"]
    assert (await api.delete(path)).status_code == 409
    async with redis_client(api.settings.redis) as redis:
        key = lease_key(api.settings.name, dump["id"], lease)
        assert 0 < await redis.pttl(key) <= 60_000
        await redis.pexpire(key, 1)

    async def deleted() -> bool:
        return (await api.delete(path)).status_code == 204

    await eventually(deleted)


@pytest.mark.parametrize("client_stays", [True, False])
async def test_a_download_has_a_lease_until_it_ends(api: Api, dump: dict[str, Any], client_stays: bool) -> None:
    statuses: list[int] = []
    disconnected = asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body" and not statuses:
            statuses.append((await api.delete(f"/v1/dumps/{dump['id']}")).status_code)
            if not client_stays:
                disconnected.set()
                await asyncio.Event().wait()

    async def receive() -> dict[str, Any]:
        await disconnected.wait()
        return {"type": "http.disconnect"}

    path = path_of(dump, dump["files"][0]["name"])
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": [], "root_path": "", "scheme": "http", "http_version": "1.1"}  # fmt: skip
    await api.app(scope, receive, send)
    assert statuses == [409]
    assert (await api.delete(f"/v1/dumps/{dump['id']}")).status_code == 204


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_at_most_one_of_a_concurrent_lease_and_deletion_succeeds(api: Api, tmp_path: Path) -> None:
    generator = random.Random(7)
    store = FolderStore(tmp_path)
    ever_succeeded = set()
    async with redis_client(api.settings.redis) as redis:
        name = api.settings.name
        dumps = DumpManager(api.settings, store, Leases(redis, name, ttl=60), Owners(redis, name), lambda: None)
        for number in range(200):
            dump = f"d{number}"
            await store.add(Manifest(id=dump, pipeline="p", state=State.COMPLETE, created=datetime.now(UTC)))
            actions = [("lease", dumps.lease(dump)), ("delete", dumps.delete(dump))]
            generator.shuffle(actions)
            answers = await asyncio.gather(*(action for _, action in actions), return_exceptions=True)
            refused = [answer for answer in answers if isinstance(answer, BaseException)]
            assert all(isinstance(answer, Problem) for answer in refused)
            succeeded = {name for (name, _), answer in zip(actions, answers, strict=True) if answer not in refused}
            assert len(succeeded) < 2
            assert (tmp_path / dump).exists() is ("delete" not in succeeded)
            ever_succeeded |= succeeded
    assert ever_succeeded == {"lease", "delete"}


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_deletion_that_was_suspended_past_its_key_gives_a_leased_dump_back(
    api: Api, dump: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide = FolderStore.hide

    async def late_hide(store: FolderStore, dump: str) -> None:
        async with redis_client(api.settings.redis) as redis:
            await redis.delete(dump_deletion_key(api.settings.name, dump))
        assert (await api.post(f"/v1/dumps/{dump}/leases")).status_code == 201
        await hide(store, dump)

    monkeypatch.setattr(FolderStore, "hide", late_hide)
    before = sorted(path.name for path in (tmp_path / dump["id"]).iterdir())
    assert (await api.delete(f"/v1/dumps/{dump['id']}")).status_code == 409
    assert sorted(path.name for path in (tmp_path / dump["id"]).iterdir()) == before


async def test_retention_keeps_the_newest_dumps_and_leased_ones(
    serve: Callable[..., Any], execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("databus_dump_api.retention._PAUSE_SECONDS", 0.1)
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with serve(dumps={"keep": 2}) as api:
        first, second = (await api.take_dump())["id"], (await api.take_dump())["id"]
        lease = (await api.post(f"/v1/dumps/{first}/leases")).headers["Location"]
        third = (await api.take_dump())["id"]
        assert await dump_ids(api) == [third, second, first]
        await api.delete(lease)
        fourth = (await api.take_dump())["id"]

        async def deleted() -> bool:
            return await dump_ids(api) == [fourth, third]

        await eventually(deleted)


async def dump_ids(api: Api) -> list[str]:
    return [dump["id"] for dump in (await api.get("/v1/dumps")).json()["dumps"]]

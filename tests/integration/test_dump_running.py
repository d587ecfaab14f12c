"""A dump while it runs: progress, events, cancellation, and what other replicas see and do."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from common.connections import Execute, connected, printing
from common.pipelines import MakePipeline
from common.waiting import eventually, throughout
from databus_binlog import Position
from databus_core.names import dump_owner_key, progress_topic
from databus_core.progress import Progress, encode_progress
from databus_core.redis_connection import redis_client
from databus_dump_api import chunked, preparation, snapshot
from databus_dump_api.folder_claim import FolderClaim
from databus_dump_api.tables import find_tables
from devstack import Server, Stack
from integration.dump_api import Api, create_topic, produce

Serve = Callable[..., AbstractAsyncContextManager[Api]]


@pytest.fixture(scope="module")
def source(own: Stack) -> Server:
    """A MariaDB that has run no XA COMMIT. After one, a dump's global lock would wait for the block."""
    return own.start("mariadb")


@pytest.fixture
async def blocked(source: Server, schema: str, execute: Execute) -> AsyncIterator[Callable[[], Any]]:
    """Two tables, of which dumps can read only the first one during the block."""
    await execute("CREATE TABLE first (id INT PRIMARY KEY)")
    await execute("CREATE TABLE last (id INT PRIMARY KEY)")
    await execute("INSERT INTO first SELECT seq FROM seq_1_to_1000")
    await execute("INSERT INTO last SELECT seq FROM seq_1_to_3000")

    @asynccontextmanager
    async def lock() -> AsyncIterator[None]:
        async with connected(source) as run:
            await run(f"LOCK TABLES {schema}.last WRITE")
            yield

    yield lock


async def start(api: Api, **headers: str) -> str:
    """Request a dump and wait until it has read the first table. Return its path."""
    answer = await api.post("/v1/dumps", json={}, headers=headers)
    path: str = answer.headers["Location"]

    async def half() -> bool:
        progress = (await api.get(path)).json()["progress"]
        return bool(progress and progress["rows"] == 1000)

    await eventually(half)
    return path


async def ended(api: Api, path: str) -> dict[str, Any]:
    async def manifest() -> dict[str, Any] | None:
        found: dict[str, Any] = (await api.get(path)).json()
        return None if found["state"] in ("pending", "running") else found

    found = await eventually(manifest)
    assert found
    return found


async def events_of(api: Api, path: str) -> list[tuple[str, dict[str, Any]]]:
    """Read all events of a dump, until the server ends the stream."""
    answer = await api.get(f"{path}/events")
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in answer.text.split("\n\n") if block]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


async def test_a_running_dump_has_progress_and_events_until_its_end(api: Api, blocked: Callable[[], Any]) -> None:
    async with blocked():
        path = await start(api)
        listed = (await api.get("/v1/dumps")).json()["dumps"][0]
        assert listed["state"] == "running"
        progress = listed["progress"]
        assert 1000 < progress["estimated_rows"] < 10_000
        assert progress["bytes"] > 0
        assert progress["eta_seconds"] > 0
        following = asyncio.create_task(events_of(api, path))
        await asyncio.sleep(0)
    events = await following
    assert {name for name, _ in events[:-1]} == {"progress"}
    assert events[0][1]["state"] == "running"
    manifest = await ended(api, path)
    assert (manifest["state"], manifest["progress"]) == ("complete", None)
    end = {"id": manifest["id"], "state": "complete", "progress": None, "error": None}
    assert events[-1] == ("end", end)
    assert await events_of(api, path) == [("end", end)]
    assert (await api.get("/v1/dumps/unknown/events")).status_code == 404


async def test_a_running_dump_can_be_cancelled(
    api: Api, blocked: Callable[[], Any], tmp_path: Path, source: Server, schema: str
) -> None:
    async with blocked():
        path = await start(api)
        assert (await api.delete(path)).status_code == 409
        answer = await api.post(f"{path}/cancel")
        manifest = answer.json()
        assert (answer.status_code, manifest["state"], manifest["files"]) == (202, "cancelled", [])
        assert [each.name for each in (tmp_path / manifest["id"]).iterdir()] == ["manifest.json"]
        assert (await api.post(f"{path}/cancel")).json() == manifest
        await api.take_dump(f"{schema}.first")  # the worker has left the cancelled one
    async with printing(source) as printed:

        async def no_view() -> bool:
            return await printed("SELECT 1 FROM information_schema.innodb_trx") == []

        await eventually(no_view)
    complete = await api.take_dump()
    refused = await api.post(f"/v1/dumps/{complete['id']}/cancel")
    assert (refused.status_code, refused.headers["Content-Type"]) == (409, "application/problem+json")
    assert (await api.get(path)).json() == manifest
    assert (await api.delete(path)).status_code == 204


@pytest.mark.parametrize("mode", ["view", "chunked"])
async def test_a_table_that_is_created_while_a_dump_is_pending_is_in_it(
    api: Api, blocked: Callable[[], Any], schema: str, execute: Execute, mode: str
) -> None:
    """Otherwise consumers would leave out its changes before the dump's position."""
    async with blocked():
        running = await start(api)
        pending = (await api.post("/v1/dumps", json={"mode": mode})).headers["Location"]
        await execute("CREATE TABLE between_them (id INT PRIMARY KEY)")
        await execute("INSERT INTO between_them VALUES (1)")
    assert (await ended(api, running))["state"] == "complete"
    manifest = await ended(api, pending)
    assert await api.rows(manifest, f"{schema}.between_them") == [[b"1"]]


@pytest.mark.parametrize("mode", ["view", "chunked"])
async def test_a_table_that_is_created_while_the_first_view_opens_fails_the_dump(
    api: Api, schema: str, execute: Execute, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    begin = preparation.begin

    async def with_new_table(*arguments: Any) -> Any:
        monkeypatch.setattr(preparation, "find_tables", later)
        return await begin(*arguments)

    async def later(*arguments: Any) -> Any:
        found = await find_tables(*arguments)
        monkeypatch.setattr(preparation, "find_tables", find_tables)
        await execute("CREATE TABLE late (id INT PRIMARY KEY)")
        return found

    for module in snapshot, chunked:
        monkeypatch.setattr(module, "begin", with_new_table)
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    path = (await api.post("/v1/dumps", json={"mode": mode})).headers["Location"]
    assert (await ended(api, path))["error"] == (
        f"table {schema}.late was created while the dump began: request a new dump"
    )


async def test_a_pending_dump_can_be_cancelled(api: Api, blocked: Callable[[], Any]) -> None:
    async with blocked():
        running = await start(api)
        pending = (await api.post("/v1/dumps", json={})).headers["Location"]
        assert (await api.post(f"{pending}/cancel")).json()["state"] == "cancelled"
    assert (await ended(api, running))["state"] == "complete"
    assert (await api.get(pending)).json()["state"] == "cancelled"


async def test_any_replica_shows_cancels_and_serves_the_dumps_of_another(
    serve: Serve, blocked: Callable[[], Any], schema: str
) -> None:
    async with serve() as one:
        path = ""
        async with blocked():
            path = await start(one)
            async with serve(started=False) as two:
                assert (await two.get(path)).json()["progress"]["rows"] == 1000
                second = await start(two)  # each replica takes one dump
                assert (await two.post(f"{path}/cancel")).status_code == 202
        assert (await one.get(path)).json()["state"] == "cancelled"
        assert (await ended(one, second))["state"] == "failed"  # its replica has stopped
        manifest = await one.take_dump()
        async with serve(started=False) as two:
            assert len(await two.rows(manifest, f"{schema}.last")) == 3000
            lease = (await two.post(f"/v1/dumps/{manifest['id']}/leases")).headers["Location"]
            assert (await one.delete(f"/v1/dumps/{manifest['id']}")).status_code == 409
            assert (await one.delete(lease)).status_code == 204
            assert (await one.delete(f"/v1/dumps/{manifest['id']}")).status_code == 204
            assert (await two.get(f"/v1/dumps/{manifest['id']}")).status_code == 404


async def test_a_dump_whose_process_was_killed_fails_with_the_reason(
    make_pipeline: MakePipeline, source: Server, schema: str, kafka: Server, blocked: Callable[[], Any]
) -> None:
    """Another replica notices when the lease has expired, and not before."""
    pipeline = make_pipeline(source, schema)
    await create_topic(kafka, progress_topic(pipeline.name))
    await produce(kafka, progress_topic(pipeline.name), encode_progress(Progress(Position())))
    for replica in range(2):
        await asyncio.to_thread(pipeline.spawn, "dump-api", replica=replica)
    for replica in range(2):
        await asyncio.to_thread(pipeline.wait, "dump-api", replica)
    async with (
        Api(base_url=pipeline.url("dump-api")) as one,
        Api(base_url=pipeline.url("dump-api", 1)) as two,
        blocked(),
    ):
        paths = [await start(one), await start(one)]
        await asyncio.to_thread(pipeline.kill, "dump-api")
        manifests = [(await two.get(path)).json() for path in paths]
        assert [manifest["state"] for manifest in manifests] == ["running", "running"]

        async def failed() -> list[str]:
            return [path for path in paths if (await two.get(path)).json()["state"] == "failed"]

        (path,) = await eventually(failed)
        manifest = (await two.get(path)).json()
        assert manifest["error"] == "the dump-api that took it has stopped; request a new dump"
    (path,) = [each for each in paths if each != path]
    async with Api(base_url=pipeline.url("dump-api", 1)) as two:
        assert (await ended(two, path))["state"] == "complete"
    folder = pipeline.home / "dumps" / manifest["id"]
    assert [each.name for each in folder.iterdir()] == ["manifest.json"]


async def test_a_replica_that_lost_its_dump_stops_and_publishes_nothing(
    api: Api, blocked: Callable[[], Any], tmp_path: Path
) -> None:
    """It lost the claim while it was suspended, perhaps; the next writer has not ended the dump yet."""
    async with blocked():
        path = await start(api)
        dump = path.rpartition("/")[2]
        claim = await asyncio.to_thread(FolderClaim, tmp_path / dump)
    other = await api.take_dump()  # so the worker has left the first one
    assert (await api.get(path)).json()["state"] == "running"
    claim.release()
    assert (await ended(api, path))["state"] == "failed"
    assert other["state"] == "complete"


async def test_a_dump_survives_a_redis_that_loses_everything(
    serve: Serve, blocked: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks for dumps without an owner just then waits for the owner to come back."""
    monkeypatch.setattr("databus_dump_api.worker._RENEW_SECONDS", 0.5)
    monkeypatch.setattr("databus_dump_api.worker._LOOK_SECONDS", 0.7)
    async with serve() as api, blocked():
        path = await start(api)
        key = dump_owner_key(api.settings.name, path.rpartition("/")[2])
        async with redis_client(api.settings.redis) as redis:
            owner = await redis.get(key)

            async def owned_again() -> bool:
                return bool(await redis.get(key) == owner)

            for _ in range(5):
                await redis.delete(key)
                await eventually(owned_again)
                await throughout(1, owned_again)
        assert (await api.get(path)).json()["state"] == "running"

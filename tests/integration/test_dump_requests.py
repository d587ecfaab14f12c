"""Requests to dump-api: sent twice, with keys, by the page; and dumps that schedules request."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from common.connections import Execute
from common.pipelines import MakePipeline
from common.waiting import eventually, throughout
from databus_core.dump_client import DumpApi
from databus_core.errors import DumpUnusable
from databus_core.manifest import Manifest, Mode, State
from databus_core.redis_connection import redis_client
from databus_core.settings import Dumps, Settings
from databus_dump_api.dumps import DumpManager
from databus_dump_api.owners import Owners
from databus_dump_api.schedules import Scheduler
from devstack import Server
from devstack.process import tail
from integration.dump_api import Api, path_of

pytestmark = pytest.mark.parametrize("source", ["mariadb"], indirect=True)

Serve = Callable[..., AbstractAsyncContextManager[Api]]


@pytest.fixture
async def tables(schema: str, execute: Execute) -> list[str]:
    """Two tables with a row."""
    for name in "ab":
        await execute(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
        await execute(f"INSERT INTO {name} VALUES (1)")
    return [f"{schema}.a", f"{schema}.b"]


# --- Idempotency-Key --------------------------------------------------------------------------------------------------


def requesting(api: Api, key: str, *tables: str) -> Awaitable[httpx.Response]:
    return api.post("/v1/dumps", json={"tables": tables}, headers={"Idempotency-Key": key})


async def test_a_request_that_is_sent_again_is_done_once(serve: Serve, tables: list[str]) -> None:
    async with serve() as api, serve(started=False) as another:
        first = await requesting(api, "k", tables[0])
        again = await requesting(another, "k", tables[0])
        assert (first.status_code, again.status_code) == (202, 202)
        assert again.json()["id"] == first.json()["id"]
        assert (await requesting(api, "k", tables[0])).json()["id"] == first.json()["id"]
        assert again.headers["Location"] == first.headers["Location"]
        other_key = await requesting(api, "l", tables[0])
        assert other_key.json()["id"] != first.json()["id"]
        other_body = await requesting(api, "k", tables[1])
        assert (other_body.status_code, other_body.headers["Content-Type"]) == (422, "application/problem+json")
        assert "was sent with another body" in other_body.json()["detail"]
        assert len((await api.get("/v1/dumps")).json()["dumps"]) == 2


async def test_of_requests_at_the_same_time_one_is_done(api: Api, tables: list[str]) -> None:
    answers = await asyncio.gather(*(requesting(api, "k", tables[0]) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409, 409]
    assert all(answer.headers["Retry-After"] for answer in answers if answer.status_code == 409)
    assert len((await api.get("/v1/dumps")).json()["dumps"]) == 1


async def test_a_request_that_failed_may_be_sent_again_with_its_key(
    api: Api, tables: list[str], schema: str, execute: Execute
) -> None:
    assert (await requesting(api, "k", f"{schema}.later")).status_code == 422
    await execute("CREATE TABLE later (id INT PRIMARY KEY)")
    assert (await requesting(api, "k", f"{schema}.later")).status_code == 202
    assert (await requesting(api, "", tables[0])).status_code == 422
    assert (await requesting(api, "k" * 201, tables[0])).status_code == 422


async def test_the_dump_of_a_key_may_be_deleted(api: Api, tables: list[str]) -> None:
    path = (await requesting(api, "k", tables[0])).headers["Location"]

    async def deleted() -> bool:
        return (await api.delete(path)).status_code == 204

    await eventually(deleted)
    assert (await requesting(api, "k", tables[0])).status_code == 404


# --- lists and HEAD ---------------------------------------------------------------------------------------------------


async def test_dumps_are_listed_by_pages_and_filters(api: Api, tables: list[str]) -> None:
    ids = [(await api.take_dump(table))["id"] for table in (*tables, tables[0])]
    first = (await api.get("/v1/dumps", params={"limit": 2})).json()
    second = (await api.get("/v1/dumps", params={"limit": 2, "cursor": first["next"]})).json()
    assert [dump["id"] for dump in first["dumps"] + second["dumps"]] == ids[::-1]
    assert second["next"] is None
    found = (await api.get("/v1/dumps", params={"state": ["complete", "failed"], "table": tables[1]})).json()
    assert [dump["id"] for dump in found["dumps"]] == [ids[1]]
    assert (await api.get("/v1/dumps", params={"state": "cancelled"})).json()["dumps"] == []
    for wrong in {"limit": 0}, {"state": "gone"}, {"cursor": "x"}, {"table": "x"}, {"page": 2}:
        answer = await api.get("/v1/dumps", params=wrong)
        assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json")
        assert next(iter(wrong)) in answer.json()["detail"]


async def test_head_answers_like_get(api: Api, tables: list[str]) -> None:
    manifest = await api.take_dump()
    file = path_of(manifest, manifest["files"][0]["name"])
    for path in "/v1/dumps", f"/v1/dumps/{manifest['id']}", file, "/v1/dumps/unknown":
        head, get = await api.head(path), await api.get(path)
        assert (head.status_code, head.headers) == (get.status_code, get.headers), path


async def test_hundreds_of_downloads_at_once_wait_for_one_another(serve: Serve, tables: list[str]) -> None:
    """Each needs Redis for its lease."""
    async with serve(dumps={"requests_per_second": 1000}) as api:
        manifest = await api.take_dump()
        path = path_of(manifest, manifest["files"][0]["name"])
        answers = await asyncio.gather(*(api.get(path) for _ in range(300)))
        assert {answer.status_code for answer in answers} == {200}


# --- API keys ---------------------------------------------------------------------------------------------------------


async def test_clients_send_the_key_of_their_configuration(
    make_pipeline: MakePipeline, source: Server, schema: str, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("a key")
    keys = [{"name": "lake", "scopes": ["read"], "key_file": str(tmp_path / "key")}]
    pipeline = make_pipeline(source, schema, dumps={"api_keys": keys})
    await asyncio.to_thread(pipeline.start_all, "dump-api")
    url = pipeline.url("dump-api")
    async with DumpApi.of(Dumps(url=url, api_key_file=tmp_path / "key")) as api:
        assert await api.dumps() == []
        with pytest.raises(DumpUnusable, match="403: API key lake has not the scope write"):
            await api.take(["*.*"])
    async with DumpApi.of(Dumps(url=url)) as api:
        with pytest.raises(DumpUnusable, match="401: send a valid API key"):
            await api.dumps()


async def test_dump_api_does_not_listen_on_the_network_without_keys(
    make_pipeline: MakePipeline, source: Server, schema: str
) -> None:
    pipeline = make_pipeline(source, schema, dumps={"listen": "0.0.0.0:1"})
    await asyncio.to_thread(pipeline.spawn, "dump-api")
    await asyncio.to_thread(pipeline.wait_ended, "dump-api", 30)
    assert "set dumps.api_keys, or dumps.open: true" in tail(pipeline.log("dump-api"))


# --- schedules --------------------------------------------------------------------------------------------------------


async def test_one_of_the_replicas_requests_the_dump_of_a_schedule(serve: Serve, tables: list[str]) -> None:
    digest = sha256(b"key").hexdigest()
    settings = {
        "schedules": [{"name": "often", "tables": [tables[0]], "every": "1h"}, {"name": "rare", "cron": "0 0 1 1 *"}],
        "api_keys": [{"name": "k", "scopes": ["read", "write"], "sha256": digest}],
    }
    async with serve(dumps=settings) as api, serve(started=False, dumps=settings):
        api.headers["Authorization"] = "Bearer key"

        async def listed() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = (await api.get("/v1/dumps")).json()["dumps"]
            return found

        (dump,) = await eventually(listed)
        assert (dump["schedule"], dump["requested"]) == ("often", [tables[0]])

        async def still_one() -> bool:
            return len(await listed()) == 1

        await throughout(3, still_one)


class Requested:
    """Stands for the dumps: keeps what schedules request."""

    def __init__(self) -> None:
        self.dumps: list[Manifest] = []

    async def newest_first(self) -> list[Manifest]:
        return self.dumps

    async def request(self, _: object, mode: Mode, schedule: str) -> Manifest:
        now = datetime.now(UTC)
        pending = Manifest(id="d", pipeline="p", state=State.PENDING, created=now, mode=mode, schedule=schedule)
        self.dumps.append(pending)
        return self.dumps[-1]


async def test_a_replica_that_comes_too_late_finds_the_dump_of_the_other(redis_server: Server, schema: str) -> None:
    """Both have found the schedule due, but only one can request the dump first."""
    schedules = [{"name": "often", "every": "1h", "mode": "chunked"}]
    settings = Settings.model_validate(
        {"name": schema, "redis": {"url": redis_server.url}, "dumps": {"schedules": schedules}}
    )
    requested = Requested()
    async with redis_client(settings.redis) as redis:
        one, two = (Scheduler(settings, cast(DumpManager, requested), Owners(redis, schema)) for _ in range(2))
        for scheduler in one, two:
            await scheduler._request(settings.dumps.schedules[0])
    assert [dump.mode for dump in requested.dumps] == [Mode.CHUNKED]

"""The HTTP API of dump-api (requests, downloads, leases, deletion), and the program's `--check` and errors."""

import asyncio
import hashlib
import hmac
import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from common.connections import Execute
from common.pipelines import MakePipeline, RunService
from common.waiting import eventually
from databus_core.manifest import Manifest, State
from databus_core.metrics import dumps as metrics
from databus_core.names import dump_deletion_key, lease_key
from databus_core.redis_connection import redis_client
from databus_dump_api.dumps import DumpManager
from databus_dump_api.folder_store import FolderStore
from databus_dump_api.leases import Leases
from databus_dump_api.owners import Owners
from databus_dump_api.problems import Problem
from devstack import Server
from integration.dump_api import Api, create_topic, path_of

pytestmark = pytest.mark.mysql_in_slow


@pytest.fixture
async def dump(api: Api, execute: Execute) -> dict[str, Any]:
    """The manifest of a dump of one table with one row."""
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    return await api.take_dump()


# --- requests and downloads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["{0}.missing", "{0}.hidden", "mysql.*", "other.*"])
async def test_a_request_for_tables_that_are_not_captured_is_refused_and_the_error_names_them(
    api: Api, schema: str, execute: Execute, pattern: str
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("CREATE TABLE hidden (id INT PRIMARY KEY)")
    unknown = pattern.format(schema)
    answer = await api.post("/v1/dumps", json={"tables": [f"{schema}.t", unknown]})
    assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json")
    assert f"no captured and published table matches {unknown}:" in answer.json()["detail"]
    assert (await api.get("/v1/dumps")).json() == {"dumps": [], "next": None}


@pytest.mark.parametrize("body", ['{"tables": "t"}', '{"tables": []}', '{"table": ["a.b"]}', "{"])
async def test_a_malformed_request_gets_a_problem_document(api: Api, body: str) -> None:
    answer = await api.post("/v1/dumps", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json")
    assert answer.json()["detail"].startswith("body")


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize(
    ("tables", "status", "error"),
    [
        (["a.b"] * 1001, 422, "at most 1000 items"),
        (["a." + "*b" * 150], 422, "at most 300 characters"),
        (["a.b"] * 200_000, 413, "at most 1048576 bytes"),
    ],
)
async def test_a_request_has_a_limited_size(api: Api, tables: list[str], status: int, error: str) -> None:
    answer = await api.post("/v1/dumps", json={"tables": tables})
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
    assert error in answer.json()["detail"]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize("body", ["", '{"tables": ["*.*"]}'])
async def test_a_page_of_another_site_cannot_start_a_dump(api: Api, kind: str | None, body: str) -> None:
    """A browser sends such a request without a question; one with `application/json` it would not send."""
    answer = await api.post("/v1/dumps", content=body, headers={"Content-Type": kind} if kind else {})
    assert (answer.status_code, answer.headers["Content-Type"]) == (415, "application/problem+json")
    assert "Content-Type: application/json" in answer.json()["detail"]
    assert (await api.get("/v1/dumps")).json() == {"dumps": [], "next": None}


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_request_without_a_body_asks_for_all_tables(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    answer = await api.post("/v1/dumps", headers={"Content-Type": "application/json; charset=utf-8"})
    assert answer.status_code == 202
    assert [table["name"] for table in answer.json()["tables"]] == ["t"]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_the_queue_of_requests_has_a_limit(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    answers = await asyncio.gather(*(api.post("/v1/dumps", json={}) for _ in range(30)))
    refused = [answer for answer in answers if answer.status_code != 202]
    assert len(refused) == 20
    assert {(answer.status_code, answer.headers["Content-Type"]) for answer in refused} == {
        (429, "application/problem+json")
    }
    assert "10 requests" in refused[0].json()["detail"]
    assert int(refused[0].headers["Retry-After"]) > 0

    async def accepted() -> bool:
        return (await api.post("/v1/dumps", json={})).status_code == 202

    await eventually(accepted)


async def test_a_downloaded_file_matches_its_manifest(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE `a/b c` (id INT PRIMARY KEY, name VARCHAR(10))")
    await execute("INSERT INTO `a/b c` VALUES (3, NULL), (1, 'Zoë'), (2, '')")
    manifest = await api.take_dump(f"{schema}.a*")
    assert [table["name"] for table in manifest["tables"]] == ["a/b c"]
    [file] = manifest["files"]
    assert (file["table"], file["rows"]) == (f"{schema}.a/b c", 3)
    answer = await api.get(path_of(manifest, file["name"]))
    assert answer.headers["ETag"] == f'"{file["sha256"]}"'
    assert hashlib.sha256(answer.content).hexdigest() == file["sha256"]
    assert int(answer.headers["Content-Length"]) == file["bytes"] == len(answer.content)
    downloads = metrics.DOWNLOADS.collect()
    head = await api.head(path_of(manifest, file["name"]))
    assert (head.status_code, head.content) == (200, b"")
    assert metrics.DOWNLOADS.collect() == downloads
    assert head.headers == answer.headers
    rest = await api.get(path_of(manifest, file["name"]), headers={"Range": "bytes=5-"})
    assert (rest.status_code, rest.content) == (206, answer.content[5:])
    rows = await api.rows(manifest, f"{schema}.a/b c")
    assert rows == [[b"1", "Zoë".encode()], [b"2", b""], [b"3", None]]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_dump_has_all_rows_in_each_format(serve: Callable[..., Any], schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, `a.b` VARCHAR(10), v BLOB)")
    await execute("CREATE TABLE empty (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (3, NULL, X'00FF'), (1, 'Zoë', NULL)")
    async with serve(dumps={"formats": ["parquet", "jsonl"]}) as api:
        manifest = await api.take_dump()
        assert manifest["formats"] == ["jsonl", "parquet"]
        for file_format, media_type in ("jsonl", "application/zstd"), ("parquet", "application/vnd.apache.parquet"):
            [file] = (file for file in manifest["files"] if file["format"] == file_format)
            assert (file["table"], file["rows"]) == (f"{schema}.t", 2)
            part = await api.get(path_of(manifest, file["name"]), headers={"Range": "bytes=5-"})
            assert (part.status_code, part.headers["Content-Type"]) == (206, media_type)
            rows = await api.rows(manifest, f"{schema}.t", file_format)
            assert rows == [[b"1", "Zoë".encode(), None], [b"3", None, b"\0\xff"]]
    async with serve(started=False, dumps={"formats": ["parquet"]}) as api:
        manifest = await api.take_dump()
    assert [file["format"] for file in manifest["files"]] == ["parquet"]


async def test_a_dump_contains_only_what_the_output_named_default_publishes(
    serve: Callable[..., Any], schema: str, execute: Execute, kafka: Server
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(50), secret BLOB, state ENUM('new','paid'))")
    await execute("INSERT INTO t VALUES (1, 'a@b.c', 'x', 'new'), (2, 'd@e.f', 'y', 'paid'), (3, NULL, 'z', 'paid')")
    await execute("CREATE TABLE dropped (id INT PRIMARY KEY)")
    await execute("CREATE TABLE elsewhere (id INT PRIMARY KEY)")
    rules = [
        {"match": ["*.dropped"], "drop": True},
        {"match": ["*.t"], "topic": "{name}.published", "mask": ["mail"], "hash": ["id"],
         "columns": {"exclude": ["secret"]}, "where": [{"column": "state", "equals": "paid"}]},
        {"match": ["*.*"], "output": "other", "format": "debezium-json"},
    ]  # fmt: skip
    await create_topic(kafka, f"{schema}.published")
    async with serve(publisher={"routes": rules, "salt": "pepper"}) as api:
        manifest = await api.take_dump()
        rows = await api.rows(manifest, f"{schema}.t")
        assert [row[1:] for row in rows] == [[b"***", b"2"], [None, b"2"]]
        assert rows[0][0] == hmac.digest(b"pepper", b"2", "sha256").hex().encode()
        assert manifest["kafka_offsets"] == {f"{schema}.published": {"0": 0}}
        (table,) = manifest["tables"]
        assert [column["name"] for column in table["columns"]] == ["id", "mail", "state"]
        answer = await api.post("/v1/dumps", json={"tables": [f"{schema}.elsewhere"]})
        assert answer.status_code == 422
        await execute("ALTER TABLE t RENAME COLUMN mail TO email")
        failed = await api.take_dump(state="failed")
        assert "rule 2 does not fit table" in failed["error"]
        assert "there is no column mail" in failed["error"]


@pytest.mark.parametrize("name", ["manifest.json", "t", "%2e%2e", "..%5csecret"])
async def test_only_files_in_the_manifest_are_served(api: Api, dump: dict[str, Any], name: str) -> None:
    answer = await api.get(f"/v1/dumps/{dump['id']}/files/{name}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")
    assert answer.json()["detail"] == f"dump {dump['id']} has no file {unquote(name)}"


@pytest.mark.parametrize("path", ["../manifest.json", "%2e%2e%2fsecret", "..%2fsecret", "%2fetc%2fpasswd"])
async def test_a_path_to_another_folder_is_not_found(api: Api, dump: dict[str, Any], tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    answer = await api.get(f"/v1/dumps/{dump['id']}/files/{path}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")


async def test_the_openapi_document_describes_every_route_and_every_schema_that_it_uses(api: Api) -> None:
    answer = await api.get("/openapi.json")
    document = answer.json()
    routes = [route for path in document["paths"].values() for route in path.values()]
    assert len(routes) == 17
    assert all(route["summary"] and route["description"] for route in routes)
    assert all(response["description"] for route in routes for response in route["responses"].values())
    used = set(re.findall(r'"#/components/schemas/(\w+)"', answer.text))
    assert used >= {
        "Manifest",
        "DumpFile",
        "Table",
        "Position",
        "Document",
        "DumpLease",
        "BackfillList",
        "BackfillStatus",
    }
    assert used <= document["components"]["schemas"].keys()


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_the_openapi_page_needs_no_other_site(api: Api) -> None:
    page = await api.get("/docs")
    assert page.status_code == 200
    assert "//" not in re.sub(r"<!--.*?-->", "", page.text)
    assets = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(assets) > 1
    for asset in assets:
        assert (await api.get(asset)).status_code == 200, asset
    assert (await api.get("/redoc")).status_code == 404


# --- leases and deletion ----------------------------------------------------------------------------------------------


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


# --- the program ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize(
    ("overrides", "code", "setting"),
    [
        ({"source": {"password": "wrong", "password_file": None}}, 78, "source.password"),
        ({"redis": {"url": "redis://127.0.0.1:1/0"}}, 75, "redis.url"),
        ({"redis": {"url": "localhost:6379"}}, 78, "redis.url"),
        ({"kafka": {"bootstrap_servers": ["127.0.0.1:1"]}}, 75, "kafka.bootstrap_servers"),
        ({"dumps": {"storage": "file:///proc/dumps"}}, 78, "dumps.storage"),
    ],
)
async def test_check_names_the_setting_that_is_wrong(
    make_pipeline: MakePipeline, source: Server, schema: str, run_service: RunService, overrides: dict[str, Any],
    code: int, setting: str,
) -> None:  # fmt: skip
    config = make_pipeline(source, schema).config
    configure(config, overrides)
    found, output = await run_service("dump-api", config, "--check")
    assert found == code, output
    assert setting in output.splitlines()[-1]
    assert "Traceback" not in output


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_check_reports_that_the_service_is_ready(
    make_pipeline: MakePipeline, source: Server, schema: str, run_service: RunService
) -> None:
    code, output = await run_service("dump-api", make_pipeline(source, schema).config, "--check")
    assert (code, output.splitlines()[-1]) == (0, "databus-dump-api: ready")


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_an_invalid_redis_url_is_reported_in_one_line(
    make_pipeline: MakePipeline, source: Server, schema: str, run_service: RunService
) -> None:
    config = make_pipeline(source, schema).config
    configure(config, {"redis": {"url": "localhost:6379"}})
    code, output = await run_service("dump-api", config)
    assert code == 78
    [line] = output.splitlines()
    assert "redis.url" in line


def configure(config: Path, overrides: dict[str, Any]) -> None:
    settings = json.loads(config.read_text())
    for section, values in overrides.items():
        settings[section] |= values
    config.write_text(json.dumps(settings))

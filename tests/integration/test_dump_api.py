"""The HTTP API of dump-api: requests, downloads and the OpenAPI document."""

import asyncio
import hashlib
import hmac
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from common.connections import Execute
from common.waiting import eventually
from databus_core.metrics import dumps as metrics
from devstack import Server
from integration.dump_api import Api, create_topic, path_of

pytestmark = pytest.mark.mysql_in_slow


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

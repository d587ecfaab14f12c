"""Dumps over HTTP: snapshots of real databases, downloads, leases and deletion."""

import asyncio
import hashlib
import hmac
import json
import random
import socket
import sys
import tracemalloc
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest
import uvicorn
import zstandard
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from conftest import Execute, MakePipeline, connected
from databus.catalog import read_table
from databus.cli.__main__ import main
from databus.connections import connect_source, redis_client
from databus.errors import SchemaMismatch
from databus.manifest import Manifest, State
from databus.names import progress_topic
from databus.progress import Progress, encode_progress
from databus.runtime import Health
from databus.settings import Settings
from databus_binlog import Position, Rows
from databus_dump_api.__main__ import Service
from databus_dump_api.dumps import Dumps
from databus_dump_api.leases import Leases
from databus_dump_api.problems import Problem
from databus_dump_api.select import select
from databus_dump_api.store import Store
from databus_dump_api.tables import define, require_unchanged
from databus_dump_api.view import open_view
from devstack import Server

Cells = list[bytes | None]


class Api(httpx.AsyncClient):
    """A client of a service that runs in this process."""

    settings: Settings
    app: Any

    async def dumped(self, *tables: str, state: str = "complete") -> dict[str, Any]:
        """Request a dump and wait for its end."""
        answer = await self.post("/v1/dumps", json={"tables": tables} if tables else None)
        assert answer.status_code == 202, answer.text
        manifest: dict[str, Any] = {}

        async def ended() -> bool:
            manifest.update((await self.get(answer.headers["Location"])).json())
            return manifest["state"] in ("complete", "failed")

        await eventually(ended)
        assert manifest["state"] == state, manifest["error"]
        return manifest

    async def rows(self, manifest: dict[str, Any], table: str) -> list[Cells]:
        """Download all rows of a table."""
        rows: list[Cells] = []
        for file in manifest["files"]:
            if file["table"] == table:
                answer = await self.get(path_of(manifest, file["name"]))
                lines = zstandard.ZstdDecompressor().decompressobj().decompress(answer.content).splitlines()
                rows += [
                    [None if c is None else b64decode(c) for c in row]
                    for line in lines
                    for row in json.loads(line)["Rows"]
                ]
        return rows


def cells(row: list[str | None]) -> Cells:
    return [None if cell is None else b64decode(cell) for cell in row]


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    for _ in range(1200):
        if await condition():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


def path_of(manifest: dict[str, Any], name: str) -> str:
    return f"/v1/dumps/{manifest['id']}/files/{quote(name)}"


class Begun(Health):
    """Tells when the service does its work: what is cancelled while it connects leaves aiokafka's connections open."""

    def __init__(self) -> None:
        super().__init__()
        self.event = asyncio.Event()

    def up(self) -> None:
        super().up()
        self.event.set()


async def create(kafka: Server, topic: str, partitions: int = 1) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await admin.start()
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    await admin.close()


async def publish(kafka: Server, topic: str, *values: bytes, partition: int = 0) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka.url) as producer:
        for value in values:
            await producer.send_and_wait(topic, value, key=b"key", partition=partition)


@pytest.fixture
async def serve(
    source: Server, schema: str, redis_server: Server, kafka: Server, tmp_path: Path
) -> AsyncIterator[Callable[..., Any]]:
    """Run a service over the test's schema, in this process; its pipeline has begun."""

    @asynccontextmanager
    async def running(begun: bool = True, **overrides: dict[str, Any]) -> AsyncIterator[Api]:
        if begun:
            await create(kafka, progress_topic(schema))
            await publish(kafka, progress_topic(schema), encode_progress(Progress(Position())))
        login = {"hosts": [f"{source.host}:{source.port}"], "user": source.user, "password": source.password}
        settings = Settings.model_validate(
            {
                "name": schema,
                "source": login | {"include": [f"{schema}.*"], "exclude": ["*.hidden"]} | overrides.get("source", {}),
                "redis": {"url": redis_server.url},
                "kafka": {"bootstrap_servers": [kafka.url]},
                "dumps": {"storage": f"file://{tmp_path}"} | overrides.get("dumps", {}),
                "publisher": overrides.get("publisher", {}),
            }
        )
        service, health = Service(), Begun()
        app = service.app(settings, health)
        work = asyncio.create_task(service.run(settings, health))
        up = asyncio.create_task(health.event.wait())
        await asyncio.wait([work, up], return_when=asyncio.FIRST_COMPLETED)
        assert up.done(), work.exception()
        async with Api(transport=httpx.ASGITransport(app), base_url="http://dumps") as api:
            api.settings, api.app = settings, app
            yield api
        work.cancel()
        await asyncio.wait([work])
        assert work.cancelled(), work.exception()

    yield running


@pytest.fixture
async def api(serve: Callable[..., Any]) -> AsyncIterator[Api]:
    async with serve() as running:
        yield running


# --- snapshots --------------------------------------------------------------------------------------------------------


# T13: commits at any moment of the hand-off from snapshot to binlog
async def test_t13_a_snapshot_is_of_one_moment_and_names_it(api: Api, source: Server, schema: str) -> None:
    async with connected(source) as execute:
        await execute(f"USE {schema}")
        await execute("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT NOT NULL, note TEXT)")
        await execute("CREATE TABLE log (n INT PRIMARY KEY)")
        for first in range(0, 5000, 100):
            rows = ", ".join(f"({number}, 100, REPEAT('x', 500))" for number in range(first, first + 100))
            await execute(f"INSERT INTO accounts VALUES {rows}")
    begun, stop = asyncio.Event(), asyncio.Event()
    writer = asyncio.create_task(transfer(source, schema, begun, stop))
    await begun.wait()
    manifest = await api.dumped()
    stop.set()
    last = await writer

    balances = [int(row[1] or 0) for row in await api.rows(manifest, f"{schema}.accounts")]
    assert (len(balances), sum(balances)) == (5000, 500_000)
    log = [int(row[0] or 0) for row in await api.rows(manifest, f"{schema}.log")]
    assert log == list(range(1, len(log) + 1))
    assert await logged_after(api.settings, manifest["position"]) == list(range(len(log) + 1, last + 1))
    assert len(log) < last


async def transfer(source: Server, schema: str, begun: asyncio.Event, stop: asyncio.Event) -> int:
    """Move money between accounts and log each transaction's number, until told to stop."""
    dice = random.Random(3)
    number = 0
    async with connected(source) as execute:
        await execute(f"USE {schema}")
        while not stop.is_set():
            number += 1
            giver, taker = dice.sample(range(5000), 2)
            await execute("BEGIN")
            await execute("UPDATE accounts SET balance = balance - 1 WHERE id = %s", giver)
            await execute("UPDATE accounts SET balance = balance + 1 WHERE id = %s", taker)
            await execute("INSERT INTO log VALUES (%s)", number)
            await execute("COMMIT")
            begun.set()
    return number


async def logged_after(settings: Settings, position: dict[str, Any]) -> list[int]:
    """Read the numbers that the binlog has after a position."""
    numbers = []
    async with connect_source(settings.source) as session:
        stream = await session.dump(
            msgspec.convert(position, Position),
            server_id=random.SystemRandom().randrange(10_000, 2**31),
            wanted=lambda schema, table: (schema, table) == (settings.name, "log"),
            follow=False,
        )
        async for events in stream:
            for event in events:
                if isinstance(event, Rows):
                    numbers += [int(row[0] or 0) for row in event.images()]
    return numbers


async def test_kafka_offsets_are_where_to_go_on(api: Api, schema: str, execute: Execute, kafka: Server) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("CREATE TABLE new (id INT PRIMARY KEY)")
    topic = f"{schema}.{schema}.t"
    await create(kafka, topic, partitions=2)
    await publish(kafka, topic, b"one", b"two", b"three", partition=1)
    assert (await api.dumped())["kafka_offsets"] == {topic: {"0": 0, "1": 3}}


@asynccontextmanager
async def slow_commits(mariadb: Server) -> AsyncIterator[None]:
    """Let commits be in the log for two seconds before the engine knows of them: no replica acknowledges them."""
    kept = {"enabled": "OFF", "timeout": "10000", "wait_point": "AFTER_COMMIT"}
    wanted = {"timeout": "2000", "wait_point": "AFTER_SYNC", "enabled": "ON"}
    async with connected(mariadb) as execute:
        for setting, value in wanted.items():
            await execute(f"SET GLOBAL rpl_semi_sync_master_{setting} = {value}")
        try:
            yield
        finally:
            for setting, value in kept.items():
                await execute(f"SET GLOBAL rpl_semi_sync_master_{setting} = {value}")


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_view_has_what_the_log_had_before_it(api: Api, source: Server, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with connect_source(api.settings.source) as session, slow_commits(source):
        table = await read_table(session, schema, "t")
        assert table
        before = await session.current_position()
        commit = asyncio.create_task(execute("INSERT INTO t VALUES (1)"))
        while await session.current_position() == before:
            assert not commit.done()
        assert await session.query(f"SELECT * FROM {schema}.t") == []
        async with open_view(api.settings.source, api.settings.source.hosts[0], session) as view:
            assert [rows async for rows in view.batches(select(table))] == [[[b"1"]]]
        await commit


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_no_dump_is_taken_before_the_pipeline_has_a_position(
    serve: Callable[..., Any], kafka: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with serve(begun=False) as api:
        await refused(api)
        await create(kafka, progress_topic(schema))
        await refused(api)
        await publish(kafka, progress_topic(schema), encode_progress(Progress()))
        await refused(api)
        await publish(kafka, progress_topic(schema), encode_progress(Progress(Position())))
        await api.dumped()


async def refused(api: Api) -> None:
    answer = await api.post("/v1/dumps")
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json")
    assert "start reader and publisher" in answer.json()["detail"]
    assert int(answer.headers["Retry-After"]) > 0


async def test_a_table_that_ddl_changes_fails_the_dump(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    source = api.settings.source
    with pytest.raises(SchemaMismatch, match="changed by DDL"):
        async with connect_source(source) as session:
            table = await read_table(session, schema, "t")
            assert table
            definition = await define(session, table)
            async with open_view(source, source.hosts[0], session) as view:
                await execute("ALTER TABLE t ADD COLUMN late INT DEFAULT 7")
                assert [rows async for rows in view.batches(select(table))] == [[[b"1"]]]
                await require_unchanged(session, definition)


async def test_a_table_that_took_anothers_name_fails_the_dump(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    source = api.settings.source
    async with connect_source(source) as session:
        table = await read_table(session, schema, "t")
        assert table
        definition = await define(session, table)
        await asyncio.sleep(1.1)  # servers tell the time of a creation in whole seconds
        await execute("CREATE TABLE ghost LIKE t")
        await execute("RENAME TABLE t TO old, ghost TO t")
        with pytest.raises(SchemaMismatch, match="changed by DDL"):
            await require_unchanged(session, definition)


async def test_ddl_waits_for_the_table_being_read_and_not_for_the_dump(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("SET lock_wait_timeout = 10")
    async with connect_source(api.settings.source) as session:
        table = await read_table(session, schema, "t")
        assert table
        async with open_view(api.settings.source, api.settings.source.hosts[0], session) as view:
            assert [rows async for rows in view.batches(select(table))] == []
            alter = asyncio.create_task(execute("ALTER TABLE t ADD COLUMN late INT"))
            query = (
                "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'ALTER%' AND state LIKE '%lock'"
            )
            while await session.query(query) != [(1,)]:
                assert not alter.done()
            await view.let_go()
            await alter


async def test_a_table_without_a_consistent_view_is_refused(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=MyISAM")
    error = (await api.dumped(state="failed"))["error"]
    assert f"{schema}.t is stored by MyISAM" in error
    assert "source.exclude" in error


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_missing_grant_is_named(
    serve: Callable[..., Any], source: Server, schema: str, execute: Execute
) -> None:
    user = f"u_{schema}"
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute(f"CREATE USER {user} IDENTIFIED BY 'secret'")
    await execute(f"GRANT SELECT ON {schema}.* TO {user}")
    try:
        async with serve(source={"user": user, "password": "secret"}) as api:
            error = (await api.dumped(state="failed"))["error"]
    finally:
        await execute(f"DROP USER {user}")
    assert "GRANT RELOAD" in error
    assert "secret" not in error


async def test_memory_does_not_grow_with_the_table(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, text LONGTEXT)")
    await execute("INSERT INTO t (text) VALUES (REPEAT('x', 10000))")
    for _ in range(13):
        await execute("INSERT INTO t (text) SELECT text FROM t")
    tracemalloc.start()
    try:
        manifest = await api.dumped()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(file["rows"] for file in manifest["files"]) == 8192
    assert peak < 20 * 2**20


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["{0}.missing", "{0}.hidden", "mysql.*", "other.*"])
async def test_a_table_that_is_not_captured_is_named_in_a_problem(
    api: Api, schema: str, execute: Execute, pattern: str
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("CREATE TABLE hidden (id INT PRIMARY KEY)")
    unknown = pattern.format(schema)
    answer = await api.post("/v1/dumps", json={"tables": [f"{schema}.t", unknown]})
    assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json")
    assert f"no captured and published table matches {unknown}:" in answer.json()["detail"]
    assert (await api.get("/v1/dumps")).json() == {"dumps": []}


@pytest.mark.parametrize("body", ['{"tables": "t"}', '{"tables": []}', '{"table": ["a.b"]}', "{"])
async def test_a_malformed_request_is_a_problem(api: Api, body: str) -> None:
    answer = await api.post("/v1/dumps", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json")
    assert answer.json()["detail"].startswith("body")


async def test_a_file_is_what_its_manifest_says(api: Api, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE `a/b c` (id INT PRIMARY KEY, name VARCHAR(10))")
    await execute("INSERT INTO `a/b c` VALUES (3, NULL), (1, 'Zoë'), (2, '')")
    manifest = await api.dumped(f"{schema}.a*")
    assert [table["name"] for table in manifest["tables"]] == ["a/b c"]
    [file] = manifest["files"]
    assert (file["table"], file["rows"]) == (f"{schema}.a/b c", 3)
    answer = await api.get(path_of(manifest, file["name"]))
    assert answer.headers["ETag"] == f'"{file["sha256"]}"'
    assert hashlib.sha256(answer.content).hexdigest() == file["sha256"]
    assert int(answer.headers["Content-Length"]) == file["bytes"] == len(answer.content)
    rest = await api.get(path_of(manifest, file["name"]), headers={"Range": "bytes=5-"})
    assert (rest.status_code, rest.content) == (206, answer.content[5:])
    rows = await api.rows(manifest, f"{schema}.a/b c")
    assert rows == [[b"1", "Zoë".encode()], [b"2", b""], [b"3", None]]


async def test_a_dump_tells_no_more_than_the_rules_of_output_default(
    serve: Callable[..., Any], schema: str, execute: Execute, kafka: Server
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(50), secret BLOB, state ENUM('new','paid'))")
    await execute("INSERT INTO t VALUES (1, 'a@b.c', 'x', 'new'), (2, 'd@e.f', 'y', 'paid'), (3, NULL, 'z', 'paid')")
    await execute("CREATE TABLE dropped (id INT PRIMARY KEY)")
    await execute("CREATE TABLE elsewhere (id INT PRIMARY KEY)")
    rules = [
        {"match": ["*.dropped"], "drop": True},
        {"match": ["*.t"], "topic": "{name}.told", "mask": ["mail"], "hash": ["id"], "columns": {"exclude": ["secret"]},
         "where": [{"column": "state", "equals": "paid"}]},
        {"match": ["*.*"], "output": "other", "format": "debezium-json"},
    ]  # fmt: skip
    await create(kafka, f"{schema}.told")
    async with serve(publisher={"routes": rules, "salt": "pepper"}) as api:
        manifest = await api.dumped()
        rows = await api.rows(manifest, f"{schema}.t")
        assert [row[1:] for row in rows] == [[b"***", b"2"], [None, b"2"]]
        assert rows[0][0] == hmac.digest(b"pepper", b"2", "sha256").hex().encode()
        assert manifest["kafka_offsets"] == {f"{schema}.told": {"0": 0}}
        (table,) = manifest["tables"]
        assert [column["name"] for column in table["columns"]] == ["id", "mail", "state"]
        answer = await api.post("/v1/dumps", json={"tables": [f"{schema}.elsewhere"]})
        assert answer.status_code == 422
        await execute("ALTER TABLE t RENAME COLUMN mail TO email")
        failed = await api.dumped(state="failed")
        assert "rule 2 does not fit table" in failed["error"]
        assert "there is no column mail" in failed["error"]


@pytest.mark.parametrize("name", ["manifest.json", "../manifest.json", "%2e%2e%2fsecret", "..%2f..%2fsecret", "t"])
async def test_only_files_of_the_manifest_are_served(api: Api, tmp_path: Path, execute: Execute, name: str) -> None:
    (tmp_path / "secret").write_text("secret")
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    manifest = await api.dumped()
    answer = await api.get(f"/v1/dumps/{manifest['id']}/files/{name}")
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")


async def test_the_openapi_page_describes_every_answer(api: Api) -> None:
    document = (await api.get("/openapi.json")).json()
    assert {"Manifest", "DumpFile", "Table", "Position", "Document", "Lease"} <= set(document["components"]["schemas"])
    routes = [route for path in document["paths"].values() for route in path.values()]
    assert len(routes) == 8
    assert all(route["summary"] and route["description"] for route in routes)
    assert (await api.get("/docs")).status_code == 200


# --- leases and deletion ----------------------------------------------------------------------------------------------


@pytest.fixture
async def dump(api: Api, execute: Execute) -> dict[str, Any]:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    return await api.dumped()


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


async def test_an_expired_lease_holds_nothing(serve: Callable[..., Any], execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with serve(dumps={"lease_ttl": "200ms"}) as api:
        path = f"/v1/dumps/{(await api.dumped())['id']}"
        await api.post(f"{path}/leases")
        assert (await api.delete(path)).status_code == 409

        async def deleted() -> bool:
            return (await api.delete(path)).status_code == 204

        await eventually(deleted)


@pytest.mark.parametrize("client_stays", [True, False])
async def test_a_download_holds_a_lease_until_it_ends(api: Api, dump: dict[str, Any], client_stays: bool) -> None:
    during: list[int] = []
    gone = asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body" and not during:
            during.append((await api.delete(f"/v1/dumps/{dump['id']}")).status_code)
            if not client_stays:
                gone.set()
                await asyncio.Event().wait()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    path = path_of(dump, dump["files"][0]["name"])
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
             "headers": [], "root_path": "", "scheme": "http", "http_version": "1.1"}  # fmt: skip
    await api.app(scope, receive, send)
    assert during == [409]
    assert (await api.delete(f"/v1/dumps/{dump['id']}")).status_code == 204


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_of_a_lease_and_a_deletion_at_the_same_moment_one_wins(api: Api, tmp_path: Path) -> None:
    dice = random.Random(7)
    store = Store(tmp_path)
    outcomes = set()
    async with Leases(redis_client(api.settings.redis), api.settings.name, ttl=60) as leases:
        dumps = Dumps(api.settings, store, leases)
        for number in range(200):
            dump = f"d{number}"
            await store.save(Manifest(id=dump, pipeline="p", state=State.COMPLETE, created=datetime.now(UTC)))
            actions = [("lease", dumps.lease(dump)), ("delete", dumps.delete(dump))]
            dice.shuffle(actions)
            answers = await asyncio.gather(*(action for _, action in actions), return_exceptions=True)
            refused = [answer for answer in answers if isinstance(answer, BaseException)]
            assert all(isinstance(answer, Problem) for answer in refused)
            won = {name for (name, _), answer in zip(actions, answers, strict=True) if answer not in refused}
            assert len(won) < 2
            assert (tmp_path / dump).exists() is ("delete" not in won)
            outcomes |= won
    assert outcomes == {"lease", "delete"}


async def test_retention_keeps_the_newest_and_what_is_read(serve: Callable[..., Any], execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with serve(dumps={"keep": 2}) as api:
        first, second = (await api.dumped())["id"], (await api.dumped())["id"]
        lease = (await api.post(f"/v1/dumps/{first}/leases")).headers["Location"]
        third = (await api.dumped())["id"]
        assert await kept(api) == [third, second, first]
        await api.delete(lease)
        fourth = (await api.dumped())["id"]

        async def retired() -> bool:
            return await kept(api) == [fourth, third]

        await eventually(retired)


async def kept(api: Api) -> list[str]:
    return [dump["id"] for dump in (await api.get("/v1/dumps")).json()["dumps"]]


# --- the program ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize(
    ("overrides", "code", "named"),
    [
        ({}, 0, "databus-dump-api: ready"),
        ({"source": {"password": "wrong", "password_file": None}}, 78, "source.password"),
        ({"redis": {"url": "redis://127.0.0.1:1/0"}}, 75, "redis.url"),
        ({"redis": {"url": "localhost:6379"}}, 78, "redis.url"),
        ({"kafka": {"bootstrap_servers": ["127.0.0.1:1"]}}, 75, "kafka.bootstrap_servers"),
        ({"dumps": {"storage": "file:///proc/dumps"}}, 78, "dumps.storage"),
    ],
)
async def test_check_names_what_is_missing(
    make_pipeline: MakePipeline, source: Server, schema: str, overrides: dict[str, Any], code: int, named: str
) -> None:
    found, output = await ended(make_pipeline(source, schema).config, overrides, "--check")
    assert found == code, output
    assert named in output.splitlines()[-1]
    assert "Traceback" not in output


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_an_address_of_redis_that_is_none_is_one_line(
    make_pipeline: MakePipeline, source: Server, schema: str
) -> None:
    code, output = await ended(make_pipeline(source, schema).config, {"redis": {"url": "localhost:6379"}})
    assert code == 78
    [line] = output.splitlines()
    assert "redis.url" in line


def configure(config: Path, overrides: dict[str, Any]) -> None:
    settings = json.loads(config.read_text())
    for section, values in overrides.items():
        settings[section] |= values
    config.write_text(json.dumps(settings))


async def ended(config: Path, overrides: dict[str, Any], *arguments: str) -> tuple[int | None, str]:
    """Run the program to its end; gives its exit code and what it said."""
    configure(config, overrides)
    command = ("-m", "databus_dump_api", "--config", str(config), *arguments)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


# --- databus dump messages --------------------------------------------------------------------------------------------


@asynccontextmanager
async def listening(api: Api) -> AsyncIterator[Callable[..., Awaitable[int]]]:
    """Serve on a socket; gives what runs `databus dump messages` there."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(api.app, log_config=None, lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        yield lambda *arguments: asyncio.to_thread(main, ["dump", "messages", *arguments, "--url", url])
        server.should_exit = True
        await serving


async def test_a_dump_is_told_in_the_formats_of_others(
    api: Api, schema: str, execute: Execute, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    await execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(10))")
    await execute("INSERT INTO a VALUES (1, 'one'), (2, NULL), (3, 'three')")
    await execute("CREATE TABLE b (id INT PRIMARY KEY)")
    await execute("CREATE TABLE größe (id INT PRIMARY KEY)")
    await execute("INSERT INTO größe VALUES (1), (2)")
    manifest = await api.dumped()
    created = int(datetime.fromisoformat(manifest["created"]).timestamp())

    async with listening(api) as run:

        async def told(*arguments: str) -> list[dict[str, Any]]:
            assert await run(manifest["id"], *arguments) == 0
            out, err = capfdbinary.readouterr()
            assert err == b""
            return [json.loads(line) for line in out.splitlines()]

        values = [line["value"]["payload"] for line in await told("--format", "debezium-json")]
        assert [(value["op"], value["source"]["table"], value["after"]["id"]) for value in values] == [
            ("r", "a", 1),
            ("r", "a", 2),
            ("r", "a", 3),
            ("r", "größe", 1),
            ("r", "größe", 2),
        ]
        markers = ["first", "true", "last_in_data_collection", "first_in_data_collection", "last"]
        assert [value["source"]["snapshot"] for value in values] == markers
        assert {value["source"]["pos"] for value in values} == {manifest["position"]["offset"]}
        assert {value["source"]["name"] for value in values} == {schema}

        values = [line["value"] for line in await told("--format", "maxwell-json", "--tables", "*.a", "*.b")]
        assert [(value["table"], value["type"], value["data"].get("id")) for value in values] == [
            ("a", "bootstrap-start", None),
            ("a", "bootstrap-insert", 1),
            ("a", "bootstrap-insert", 2),
            ("a", "bootstrap-insert", 3),
            ("a", "bootstrap-complete", None),
            ("b", "bootstrap-start", None),
            ("b", "bootstrap-complete", None),
        ]
        assert {value["ts"] for value in values} == {created}
        await execute("DROP TABLE a, b, größe")
        assert (await api.delete(f"/v1/dumps/{manifest['id']}")).status_code == 204  # no lease is left


async def test_a_dump_that_cannot_be_told_is_refused_in_one_line(
    serve: Callable[..., Any], execute: Execute, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, f FLOAT, mail TEXT)")
    await execute("INSERT INTO t VALUES (1, 0.1, NULL)")
    rules = [{"match": ["*.t"], "format": "databus", "options": {"compat": "strict"}, "mask": ["mail"]}]
    async with serve(publisher={"routes": rules}) as api, listening(api) as run:

        async def refusal(dump: str, *arguments: str) -> str:
            assert await run(dump, "--format", "dip", *arguments) == 1
            out, err = capfdbinary.readouterr()
            assert (out, err.count(b"\n")) == (b"", 1)
            return err.decode()

        manifest = await api.dumped()
        assert "t with compat: strict, which loses" in await refusal(manifest["id"])
        assert "has none of these tables" in await refusal(manifest["id"], "--tables", "no.*")
        assert "404: there is no dump 1" in await refusal("1")
        await execute("ALTER TABLE t DROP COLUMN mail")
        failed = await api.dumped(state="failed")
        assert f"dump {failed['id']} is failed, not complete: publisher.routes: rule 1" in await refusal(failed["id"])

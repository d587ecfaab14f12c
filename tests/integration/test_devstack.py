"""devstack: servers start, keep their data when they are killed, and stop."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncmy
import httpx
import psycopg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from arro3.core import Array, DataType, Table
from deltalake import write_deltalake
from redis.asyncio import Redis
from rich.console import Console

from devstack import KINDS, DevstackError, Kind, Server, Stack, cache, debs
from devstack.demo.compare import compare
from devstack.demo.scenario import Demo
from devstack.ports import free_ports
from devstack.process import Process
from devstack.server import VARIABLES


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of this module's own; servers named by the environment are not used."""
    with pytest.MonkeyPatch.context() as patch:
        for variable, _ in VARIABLES.values():
            patch.delenv(variable, raising=False)
        stack = Stack(tmp_path_factory.mktemp("devstack"))
        yield stack
        stack.discard()


def pids(stack: Stack) -> dict[Kind, int | None]:
    return {entry.kind: entry.pid for entry in stack.status()}


async def query(server: Server, *statements: str) -> list[tuple[Any, ...]]:
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    async with asyncmy.connect(**login) as connection, connection.cursor() as cursor:
        for statement in statements:
            await cursor.execute(statement)
        await connection.commit()
        return list(await cursor.fetchall())


COMMON = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}


@pytest.mark.parametrize(
    ("fixture", "own_settings"),
    [
        ("mariadb", {"gtid_strict_mode": "ON", "gtid_domain_id": "0", "server_id": "1"}),
        ("mysql", {"gtid_mode": "ON", "enforce_gtid_consistency": "ON", "server_id": "2"}),
    ],
)
async def test_a_database_logs_full_rows_with_full_metadata(
    request: pytest.FixtureRequest, fixture: str, own_settings: dict[str, str]
) -> None:
    expected = {**COMMON, **own_settings, "character_set_server": "utf8mb4", "bind_address": "127.0.0.1"}
    names = ", ".join(f"'{name}'" for name in expected)
    rows = await query(request.getfixturevalue(fixture), f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    assert dict(rows) == expected


@pytest.mark.parametrize("fixture", ["mariadb", "mysql"])
async def test_nobody_logs_in_to_a_database_without_a_password(request: pytest.FixtureRequest, fixture: str) -> None:
    server: Server = request.getfixturevalue(fixture)
    for user in ("root", "", server.user):
        with pytest.raises(asyncmy.errors.OperationalError):
            await asyncmy.connect(host=server.host, port=server.port, user=user)


async def test_redis_runs_functions(redis_server: Server) -> None:
    async with Redis.from_url(redis_server.url) as client:
        library = (
            "#!lua name=devstack\nredis.register_function('devstack_echo', function(keys, args) return args[1] end)"
        )
        await client.function_load(library, replace=True)
        assert await client.fcall("devstack_echo", 0, "hello") == b"hello"


async def test_kafka_commits_transactions(kafka: Server) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await admin.start()
    await admin.create_topics([NewTopic("devstack", num_partitions=1, replication_factor=1)])
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=kafka.url, transactional_id="devstack")
    async with producer, producer.transaction():
        await producer.send_and_wait("devstack", b"committed")
    options = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    async with AIOKafkaConsumer("devstack", bootstrap_servers=kafka.url, **options) as consumer:
        assert (await consumer.getone()).value == b"committed"


async def write(server: Server) -> None:
    match server.kind:
        case "mariadb" | "mysql":
            await query(server, "CREATE DATABASE kept", "CREATE TABLE kept.t (a INT)", "INSERT INTO kept.t VALUES (7)")
        case "redis":
            async with Redis.from_url(server.url) as client:
                await client.set("kept", "7")
        case "kafka" | "kafka-secure":
            admin = AIOKafkaAdminClient(bootstrap_servers=server.url)
            await admin.start()
            await admin.create_topics([NewTopic("kept", num_partitions=7, replication_factor=1)])
            await admin.close()
        case "registry":
            async with httpx.AsyncClient(base_url=server.url) as client:
                for name in "abcdefg":
                    schema = json.dumps({"type": "enum", "name": name, "symbols": ["A"]})
                    answer = await client.post("/subjects/kept/versions", json={"schema": schema})
                    assert answer.is_success, answer.text
        case "postgresql":
            async with await psycopg.AsyncConnection.connect(f"{server.url}/postgres") as client:
                await client.execute("CREATE TABLE kept AS SELECT 7")


async def read(server: Server) -> int:
    match server.kind:
        case "mariadb" | "mysql":
            return int((await query(server, "SELECT a FROM kept.t"))[0][0])
        case "redis":
            async with Redis.from_url(server.url) as client:
                return int(await client.get("kept") or 0)
        case "kafka" | "kafka-secure":
            admin = AIOKafkaAdminClient(bootstrap_servers=server.url)
            await admin.start()
            (topic,) = await admin.describe_topics(["kept"])
            await admin.close()
            return len(topic["partitions"])
        case "registry":
            async with httpx.AsyncClient(base_url=server.url) as client:
                return len((await client.get("/subjects/kept/versions")).json())
        case "postgresql":
            async with await psycopg.AsyncConnection.connect(f"{server.url}/postgres") as client:
                (row,) = await (await client.execute("TABLE kept")).fetchall()
                return int(row[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_restarted_server_keeps_its_data_and_its_port(own: Stack, kind: Kind) -> None:
    server = own.start(kind)
    pid = pids(own)[kind]
    assert own.start(kind) == server
    assert pids(own)[kind] == pid, "a second start keeps the server that runs"
    await write(server)

    again = own.restart(kind)

    assert again == server
    assert pids(own)[kind] != pid
    assert await read(again) == 7


def test_stop_ends_the_server_and_nothing_else(own: Stack) -> None:
    own.start("redis")
    pid = pids(own)["redis"]
    assert own.stop("redis")
    assert not Path(f"/proc/{pid}").exists()
    assert not own.stop("redis")

    us = Process.of(os.getpid())
    process_with_a_reused_pid = Process(us.pid, us.started - 1)
    process_with_a_reused_pid.save(own.home / "redis" / "process.json")
    assert not own.stop("redis")
    assert pids(own)["redis"] is None


def test_a_server_that_cannot_start_is_reported_with_the_end_of_its_log(own: Stack) -> None:
    own.start("redis")
    own.stop("redis")
    (log_of_commands,) = (own.home / "redis" / "data").glob("appendonlydir/*.incr.aof")
    log_of_commands.write_bytes(b"nonsense\r\n" * 100)
    with pytest.raises(DevstackError, match=r"redis ended while starting(.|\n)*Bad file format"):
        own.start("redis")
    shutil.rmtree(own.home / "redis")


def test_no_server_starts_on_a_nearly_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nearly_full = shutil.disk_usage(tmp_path)._replace(free=2**30)
    monkeypatch.setattr("shutil.disk_usage", lambda _: nearly_full)
    stack = Stack(tmp_path / "home", own=True)
    with pytest.raises(DevstackError, match=r"home has 1\.0 GiB left, and a new server needs 2 GiB: free some space"):
        stack.start("redis")
    assert not (tmp_path / "home" / "redis").exists()


def test_a_server_named_by_the_environment_is_used_and_never_killed(
    redis_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVSTACK_REDIS_URL", redis_server.url)
    stack = Stack(tmp_path)
    assert stack.start("redis") == redis_server
    assert pids(stack)["redis"] is None
    with pytest.raises(DevstackError, match="named by DEVSTACK_REDIS_URL"):
        stack.kill("redis")
    assert not stack.stop("redis")


@pytest.mark.parametrize(
    ("environment", "kind", "line"),
    [
        ({"DEVSTACK_REDIS_URL": "localhost"}, "redis", "DEVSTACK_REDIS_URL must have the form redis://host:port/0"),
        ({"DEVSTACK_KAFKA_BOOTSTRAP": "127.0.0.1:1"}, "kafka", "127.0.0.1:1 does not answer"),
        ({"DEVSTACK_MYSQL_URL": "mysql://a:b@127.0.0.1:1"}, "mysql", "127.0.0.1:1 does not answer"),
        ({"DEVSTACK_REGISTRY_URL": "http://127.0.0.1:1/"}, "registry", "127.0.0.1:1 does not answer"),
        ({}, "registry", "the schema registry needs a Java 17 runtime"),
        ({}, "kafka", "Kafka needs a Java 17 runtime or a newer one; install openjdk-17-jre-headless"),
        ({}, "mariadb", "there is no apt-get; set DEVSTACK_MARIADB_URL"),
    ],
)
def test_a_missing_program_or_wrong_variable_is_reported_in_one_line(
    tmp_path: Path, environment: dict[str, str], kind: Kind, line: str
) -> None:
    bare = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path), **environment}
    command = [sys.executable, "-m", "devstack", "--home", str(tmp_path / "home"), "up", kind]
    done = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (message,) = [text for text in done.stderr.splitlines() if text.startswith("devstack: ")]
    assert line in message
    assert "Traceback" not in done.stderr


def test_a_shell_can_evaluate_what_env_prints(own: Stack) -> None:
    server = own.start("redis")
    command = f'eval "$({sys.executable} -m devstack --home {own.home} env)" && printf %s "$DEVSTACK_REDIS_URL"'
    assert subprocess.check_output(["sh", "-c", command], text=True) == server.url


def test_no_other_process_gets_a_port_before_it_is_used() -> None:
    """Services are configured with their ports long before they listen on them."""
    ours = free_ports(150)
    command = [sys.executable, "-c", "from devstack.ports import free_ports; print(*free_ports(2000))"]
    others = subprocess.check_output(command, text=True).split()
    assert len({*ours, *map(int, others)}) == 2150


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_a_failed_installation_is_repeated(empty_cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise DevstackError("no network")

    with pytest.raises(DevstackError):
        cache.installed("tool", fail)
    folder = cache.installed("tool", lambda folder: (folder / "whole").touch())
    assert [path.name for path in folder.iterdir()] == ["whole"]


def test_concurrent_installations_build_once(empty_cache: Path) -> None:
    begun: list[Path] = []
    together = threading.Barrier(4)

    def build(folder: Path) -> None:
        begun.append(folder)

    def install(_: int) -> Path:
        together.wait(timeout=10)
        return cache.installed("tool", build)

    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(install, range(4)))
    assert len(folders) == 1
    assert len(begun) == 1


async def test_the_demo_does_not_replace_a_database_of_a_server_that_the_environment_names(
    devstack: Stack, mariadb: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await query(mariadb, "CREATE OR REPLACE DATABASE shop", "CREATE TABLE shop.mine (a INT)")
    monkeypatch.setenv("DEVSTACK_MARIADB_URL", mariadb.url)
    with pytest.raises(DevstackError, match="DEVSTACK_MARIADB_URL: this server has a database shop, which the demo"):
        await Demo(devstack, tmp_path, Console()).prepare()
    assert await query(mariadb, "SHOW TABLES FROM shop") == [("mine",)]
    await query(mariadb, "DROP DATABASE shop")


async def test_the_comparison_counts_a_row_that_the_mirror_has_twice(mariadb: Server, tmp_path: Path) -> None:
    await query(mariadb, "CREATE OR REPLACE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    await query(mariadb, "INSERT INTO shop.t VALUES (7)")
    twice = Table.from_pydict({"id": Array([7, 7], type=DataType.int64())})
    write_deltalake(tmp_path / "mirror/shop/t", twice)
    found = await compare(mariadb, tmp_path, "t")
    await query(mariadb, "DROP DATABASE shop")
    assert (found.rows, found.missing, found.invented, found.different, found.equal) == (1, 0, 1, 0, False)


#: stands for apt-get: two repositories of the release, and no suite can be updated
APT_GET = """#!/bin/sh
case "$*" in
  *indextargets*)
    echo "file:/mint noble Linuxmint"
    echo "file:/ubuntu noble Ubuntu"
    echo "file:/docker noble Docker" ;;
  *update*) echo "E: The repository 'file:/ubuntu unstable Release' does not have a Release file."; exit 100 ;;
esac
"""


def test_packages_come_only_from_the_distribution_and_a_missing_suite_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apt-get").write_text(APT_GET)
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    release = {"VERSION_CODENAME": "noble", "ID": "linuxmint", "ID_LIKE": "ubuntu debian"}
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: release)
    with pytest.raises(DevstackError, match=r"does not have a Release file.*set DEVSTACK_MYSQL_URL to use an existing"):
        debs.unpack("mysql", "mysql-server-core", tmp_path / "mysql", print, suite=debs.UNSTABLE)
    sources = (tmp_path / "mysql/apt/sources/devstack.sources").read_text()
    assert re.findall("URIs: (.*)", sources) == ["file:/mint", "file:/ubuntu"]

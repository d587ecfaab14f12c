"""Each alert is fired by a real fault, and clears when that is mended."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from aiokafka import AIOKafkaProducer
from redis.asyncio import Redis

from common.connections import Execute, connected, session_on
from common.fork_server import ForkServer
from common.waiting import eventually
from databus_core import names
from devstack import Server, Stack
from faults.alerts import Watched, watched
from faults.volume import resize, volume

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system of 512 MiB for dumps."""
    folder = tmp_path_factory.mktemp("dumps")
    with volume(folder, "512m"):
        yield folder


@pytest.fixture(scope="module")
async def rig(
    tmp_path_factory: pytest.TempPathFactory,
    own: Stack,
    mysql: Server,
    fork_server: ForkServer,
    storage: Path,
    jars: Path,
) -> AsyncIterator[Watched]:
    home = tmp_path_factory.mktemp("alerts") / "pipeline"
    async with watched(home, own, mysql, fork_server, storage, jars) as rig:
        yield rig


@pytest.fixture
async def execute(rig: Watched) -> AsyncIterator[Execute]:
    async with connected(rig.source) as execute:
        await execute(f"CREATE DATABASE IF NOT EXISTS {rig.schema}")
        await execute(f"USE {rig.schema}")
        yield execute


@pytest.fixture
async def redis(rig: Watched) -> AsyncIterator[Redis]:
    async with Redis.from_url(rig.redis.url) as client:
        yield client


async def test_without_a_dump_although_there_is_a_schedule(rig: Watched, execute: Execute, storage: Path) -> None:
    for name in "abcdef":
        await execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, text LONGTEXT)")
        await execute(f"INSERT INTO {name} VALUES (1, 'one')")
    await execute("CREATE TABLE large (id INT PRIMARY KEY, text TEXT) AS SELECT seq AS id, 'x' AS text FROM seq_1_to_9")
    await rig.start("reader", "publisher", "dump-api")
    await rig.until_firing("DumpOld", "DumpStorage")
    await asyncio.to_thread(resize, storage, "3g")
    await rig.start("spark-sink")  # it takes a dump
    await rig.until_cleared("DumpOld", "DumpStorage")


async def test_a_reader_that_dies_again_and_again(rig: Watched) -> None:
    for _ in range(4):
        await asyncio.to_thread(rig.pipeline.kill, "reader")
        await rig.until_firing("NoLeader")
        await rig.start("reader")
        await rig.until_cleared("NoLeader")
    await rig.until_firing("Restarts")
    await rig.until_cleared("Restarts")


async def test_kafka_is_away(rig: Watched, execute: Execute) -> None:
    await rig.proxies["kafka"].stop()
    for _ in range(4):
        await execute("UPDATE a SET text = REPEAT(HEX(RANDOM_BYTES(500)), 250)")
    await rig.until_firing("NotReady", "Stale", "Backlog", "SinkStalled")
    await rig.proxies["kafka"].start()
    await rig.until_cleared("NotReady", "Stale", "Backlog", "SinkStalled")


async def test_what_is_looked_up_every_minute(rig: Watched, execute: Execute, redis: Redis) -> None:
    """The binlog's retention, and the memory of Redis; meanwhile, a transaction stays prepared."""
    async with connected(rig.source) as other:
        await other(f"USE {rig.schema}")
        for statement in ("XA START 'x'", "UPDATE f SET text = 'two'", "XA END 'x'", "XA PREPARE 'x'"):
            await other(statement)
        await execute("SET GLOBAL binlog_expire_logs_seconds = 3600")
        used = (await redis.info("memory"))["used_memory"]
        await redis.config_set("maxmemory", int(used * 1.05))
        await rig.until_firing("RetentionShort", "RedisMemory", "PreparedTransaction")
        await execute("SET GLOBAL binlog_expire_logs_seconds = 864000")
        await redis.config_set("maxmemory", 0)
        await other("XA COMMIT 'x'")
    await rig.until_cleared("RetentionShort", "RedisMemory", "PreparedTransaction")


async def test_the_database_is_away_and_the_other_host_is_refused(rig: Watched) -> None:
    await rig.proxies["source"].stop()
    await rig.until_firing("HostRefused")
    await rig.proxies["source"].start()
    await rig.until_cleared("HostRefused", "Stale", "NotReady")


async def test_redis_loses_the_stream_again_and_again(rig: Watched, redis: Redis) -> None:
    key = names.generation_key(rig.pipeline.name)
    for _ in range(7):
        token = await redis.hget(key, "token")
        await redis.delete(key, names.stream_key(rig.pipeline.name))

        async def is_replaced(lost: bytes | None = token) -> bool:
            return await redis.hget(key, "token") not in (None, lost)

        await eventually(is_replaced)
    await rig.until_firing("Generations")
    await rig.until_cleared("Generations")


async def test_a_row_that_is_too_large(rig: Watched, execute: Execute) -> None:
    await execute("INSERT INTO b VALUES (2, REPEAT(HEX(RANDOM_BYTES(500)), 2000))")
    await rig.until_firing("DeadLetters")
    await rig.until_firing("MirrorParked")
    await execute("DELETE FROM b WHERE id = 2")
    await rig.command("databus-spark-sink", "resync", f"{rig.schema}.b")
    await rig.until_cleared("DeadLetters", "MirrorParked")


async def test_a_change_that_the_binlog_does_not_show(rig: Watched, execute: Execute) -> None:
    await execute("SET SESSION binlog_format = STATEMENT")
    await execute("UPDATE c SET text = 'two'")
    await execute("SET SESSION binlog_format = ROW")
    await rig.until_firing("TableParked")
    await rig.command("databus", "backfill", "start", f"{rig.schema}.c", "--clean")
    await rig.until_cleared("TableParked")


async def test_a_stranger_writes_to_a_topic(rig: Watched, execute: Execute) -> None:
    async with AIOKafkaProducer(bootstrap_servers=rig.kafka.url) as producer:
        await producer.send_and_wait(f"{rig.pipeline.name}.{rig.schema}.d", b"not a change")
    await execute("UPDATE d SET text = 'two'")  # the sink reads up to the end of a transaction
    await rig.until_firing("Quarantine")
    await rig.until_cleared("Quarantine")


async def test_a_mirror_differs_from_the_database(rig: Watched, execute: Execute) -> None:
    await execute("SET SESSION sql_log_bin = 0")
    await execute("INSERT INTO e VALUES (2, 'not in the binlog')")
    await rig.until_firing("VerifyDiffers")
    await execute("DELETE FROM e WHERE id = 2")
    await rig.until_cleared("VerifyDiffers")


async def test_dump_api_dies_during_a_dump(rig: Watched, execute: Execute) -> None:
    await execute("INSERT INTO large SELECT seq, 'x' FROM seq_10_to_200000")
    async with httpx.AsyncClient(base_url=rig.pipeline.url("dump-api")) as api:
        dump = (await api.post("/v1/dumps", json={})).headers["location"]

        async def is_running() -> bool:
            return (await api.get(dump)).json()["state"] == "running"

        await eventually(is_running)
        await asyncio.to_thread(rig.pipeline.kill, "dump-api")
    await rig.until_firing("NotReady")  # it is gone, with its metrics
    await rig.start("dump-api")
    await rig.until_firing("DumpFailed")
    await rig.until_cleared("DumpFailed", "NotReady")


async def test_the_database_deletes_binlogs_that_are_needed(rig: Watched, execute: Execute) -> None:
    await asyncio.to_thread(rig.pipeline.stop, "reader")
    await execute("UPDATE a SET text = 'three'")
    await execute("FLUSH BINARY LOGS")
    async with asyncio.timeout(20), session_on(rig.source) as session:
        while len(logs := list(await session.logs())) > 1:  # MariaDB keeps an old file for a moment
            await execute(f"PURGE BINARY LOGS TO '{logs[-1]}'")
    config = json.loads(rig.pipeline.config.read_text())
    config["doubt"] = {"all": "heal"}
    del config["source"]["hosts"][1:]  # as long as one may be mended, nothing is given up
    rig.pipeline.config.write_text(json.dumps(config))
    await rig.start("reader")
    await rig.until_firing("ChangesLost")
    await rig.until_cleared("ChangesLost", "TableParked")
    assert not await rig.alerts.firing()

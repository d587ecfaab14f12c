"""Whatever ends in the middle of a backfill, it goes on behind the last row that was published, and repeats none."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis

from common.connections import connected
from common.pipelines import Consume, MakePipeline
from common.waiting import eventually
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress
from databus_core.settings import load
from databus_core.source_connection import connect_source
from devstack import Server, Stack
from devstack.pipeline import Pipeline, Service
from devstack.replication import Pair, run
from integration.host_account import ACCOUNT, address
from integration.loading import Copy, command, reached, rows_of

pytestmark = pytest.mark.mysql_in_slow

#: chunks have 4 rows
SLOW = {"backfill": {"rows_per_second": 16}}
_ROWS = 12


def fill(table: str, rows: int = _ROWS) -> list[str]:
    """Return statements that create a table and insert rows."""
    values = ", ".join(f"({number}, 'old')" for number in range(rows))
    return [f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9))", f"INSERT INTO {table} VALUES {values}"]


async def progress_of(pipeline: Pipeline) -> Progress:
    progress = await read_progress(load(pipeline.config))
    assert progress
    return progress


def place(progress: Progress) -> tuple[str, int]:
    assert progress.position
    return progress.position.file, progress.position.offset


async def test_t14_a_service_is_killed_in_each_chunk(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume
) -> None:
    await run(source, *fill(f"{schema}.t"))
    pipeline = make_pipeline(source, schema, reader={"start": "snapshot"}, **SLOW)
    copy = Copy(await changes(f"{pipeline.name}.{schema}.t"))
    services: tuple[Service, ...] = ("publisher", "reader")
    for service in services:
        pipeline.spawn(service)
    chunks = range(4, _ROWS, 4)
    places = []
    for number, rows in enumerate(chunks):
        before = await reached(pipeline, lambda progress, least=rows: progress.rows >= least)
        places.append(place(await progress_of(pipeline)))
        killed = services[number % 3 != 0]
        await asyncio.to_thread(pipeline.kill, killed)
        await run(source, f"UPDATE {schema}.t SET v = 'new{number}' WHERE id IN ({rows - 1}, {rows + 6})")
        pipeline.spawn(killed)
        assert before.last_key == (b"%d" % (before.rows - 1),)
    await reached(pipeline, lambda progress: progress.state == "done")
    await copy.equals(rows_of(source, f"{schema}.t"))
    assert places == sorted(places)
    ids = [row[0] for row in copy.inserted]
    assert ids == sorted(set(ids), key=lambda id_: int(id_ or b""))


@pytest.fixture(params=["mariadb", "mysql"])
def own_source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server whose binlog files the test removes."""
    stack = Stack(tmp_path / "server", own=True)
    yield stack.start(request.param, "--log-bin=binlog", "--server-id=9")
    stack.discard()


async def test_t15_a_backfill_takes_longer_than_the_binlog_is_kept(
    make_pipeline: MakePipeline, own_source: Server, changes: Consume
) -> None:
    await run(own_source, "CREATE DATABASE shop", *fill("shop.t"))
    pipeline = make_pipeline(own_source, "shop", reader={"start": "snapshot"}, **SLOW)
    copy = Copy(await changes(f"{pipeline.name}.shop.t"))
    for service in ("publisher", "reader"):
        pipeline.spawn(service)
    for rows in range(4, _ROWS, 6):
        await reached(pipeline, lambda progress, least=rows: progress.rows >= least)
        await run(own_source, f"UPDATE shop.t SET v = 'new' WHERE id IN ({rows}, {_ROWS - 1})", "FLUSH BINARY LOGS")
        *_, (file, *_) = await run(own_source, "SHOW BINARY LOGS")

        async def only_the_last_is_kept(file: str = file) -> bool:
            if place(await progress_of(pipeline))[0] < file:
                return False
            await run(own_source, f"PURGE BINARY LOGS TO '{file}'")  # MariaDB keeps an old file for a moment
            return [kept for kept, *_ in await run(own_source, "SHOW BINARY LOGS")] == [file]

        await eventually(only_the_last_is_kept)
        await asyncio.to_thread(pipeline.kill, "reader")
        pipeline.spawn("reader")
    await reached(pipeline, lambda progress: progress.state == "done")
    await copy.equals(rows_of(own_source, "shop.t"))


async def keys_of(redis: Redis, pipeline: str) -> list[bytes]:
    return [key async for key in redis.scan_iter(f"*{pipeline}*")]


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_redis_forgets_the_pipeline_in_the_middle(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume
) -> None:
    await run(source, *fill(f"{schema}.t"))
    pipeline = make_pipeline(source, schema, reader={"start": "snapshot"}, **SLOW)
    copy = Copy(await changes(f"{pipeline.name}.{schema}.t"))
    for service in ("publisher", "reader"):
        pipeline.spawn(service)
    async with Redis.from_url(pipeline.redis.url) as redis:
        for rows in (4, 8):
            await reached(pipeline, lambda progress, least=rows: progress.rows >= least)
            await redis.delete(*await eventually(partial(keys_of, redis, pipeline.name)))
            await run(source, f"UPDATE {schema}.t SET v = 'new' WHERE id IN ({rows}, {_ROWS - 1})")
    await reached(pipeline, lambda progress: progress.state == "done")
    await copy.equals(rows_of(source, f"{schema}.t"))
    assert len(copy.inserted) == len(set(copy.inserted)) <= _ROWS


@pytest.fixture
async def paired(make_pipeline: MakePipeline, pair: Pair) -> Pipeline:
    """A running pipeline with both servers of the pair as hosts."""
    await run(pair.primary, *fill("shop.b"))
    if pair.kind == "mariadb":
        await run(pair.primary, f"GRANT REPLICA MONITOR ON *.* TO {ACCOUNT['user']}@'%'")
    hosts = [address(server) for server in pair.servers]
    source = {"hosts": hosts, "password_file": None} | ACCOUNT
    pipeline = make_pipeline(pair.primary, "shop", source=source, backfill={"rows_per_second": 16, "replica_lag": 0.5})
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    return pipeline


async def test_the_source_fails_over_between_two_chunks(pair: Pair, paired: Pipeline, changes: Consume) -> None:
    copy = Copy(await changes(f"{paired.name}.shop.b"))
    assert await command(paired, "start", "shop.b") == 0
    await reached(paired, lambda progress: progress.rows >= 4)
    await run(pair.primary, f"UPDATE shop.b SET v = 'new' WHERE id IN (1, {_ROWS - 1})")
    await pair.caught_up()
    await pair.kill(pair.primary)
    await pair.promote()
    await run(
        pair.primary, f"UPDATE shop.b SET v = 'newer' WHERE id IN (2, {_ROWS - 2})", "DELETE FROM shop.b WHERE id = 3"
    )
    await reached(paired, lambda progress: progress.state == "done")
    await copy.equals(rows_of(pair.primary, "shop.b"))
    ids = [row[0] for row in copy.inserted]
    assert len(ids) == len(set(ids))


async def test_a_backfill_waits_for_a_replica_that_is_behind(pair: Pair, paired: Pipeline, changes: Consume) -> None:
    copy = Copy(await changes(f"{paired.name}.shop.b"))
    log = paired.log("reader")

    async def is_behind() -> bool:
        async with connect_source(load(paired.config).source, address(pair.replica)) as session:
            return await session.replica_lag() > 0

    async def waits() -> bool:
        return "because of backfill.replica_lag" in log.read_text()

    async with connected(pair.replica) as on_replica:
        await on_replica("LOCK TABLES shop.t WRITE")
        await run(pair.primary, "INSERT INTO shop.t VALUES (2)")
        await eventually(is_behind)
        assert await command(paired, "start", "shop.b") == 0
        await eventually(waits)
        held = await reached(paired, lambda progress: progress.state == "running")
        await run(pair.primary, "UPDATE shop.b SET v = 'new' WHERE id = 1")
        assert held.rows == 0
        await on_replica("UNLOCK TABLES")
    await reached(paired, lambda progress: progress.state == "done")
    await copy.equals(rows_of(pair.primary, "shop.b"))

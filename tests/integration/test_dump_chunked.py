"""Chunked dumps: each part at a position of its own; they go on after a crash, and a program joins them exactly."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from common.connections import Execute, connected, printing
from common.pipelines import MakePipeline
from common.waiting import cancelled, eventually
from databus import Databus
from databus_changes.snapshot.limits import ReadLimits
from databus_core.dump_client import DumpApi
from databus_core.errors import SourceUnavailable
from databus_core.manifest import Manifest, Mode
from databus_dump_api import chunked
from devstack import Server
from devstack.pipeline import Pipeline
from integration.dump_api import Api

pytestmark = pytest.mark.mysql_in_slow

Serve = Callable[..., Any]
one_server = pytest.mark.parametrize("source", ["mariadb"], indirect=True)
ROWS = 6000
#: such a table is divided into about five parts
CHUNK = 256 * 2**10
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, note VARCHAR(200))"


async def fill(execute: Execute) -> None:
    await execute(CREATE)
    for first in range(0, ROWS, 1000):
        rows = ", ".join(f"({number}, 0, REPEAT('x', 150))" for number in range(first, first + 1000))
        await execute(f"INSERT INTO t VALUES {rows}")
    await execute("ANALYZE TABLE t")


@asynccontextmanager
async def changing(source: Server, schema: str) -> AsyncIterator[None]:
    """Insert, change, move and delete rows, each in a transaction, as fast as the server can."""
    chosen = random.Random(7)

    async def change(execute: Execute, first: int) -> None:
        await execute(f"USE {schema}")
        for number in itertools.count(first):
            some, another, third = chosen.choices(range(number - ROWS, number), k=3)
            await execute("INSERT INTO t VALUES (%s, 0, REPEAT('y', 150))", number)
            await execute("UPDATE t SET n = n + 1 WHERE id BETWEEN %s AND %s", some, some + 5)
            await execute("DELETE FROM t WHERE id = %s", another)
            await execute("UPDATE IGNORE t SET id = %s WHERE id = %s", third, some)

    async with connected(source) as execute, printing(source) as query:
        ((last,),) = await query(f"SELECT MAX(id) FROM {schema}.t")
        task = asyncio.create_task(change(execute, int(last or 0) + 1))
        yield
        await cancelled(task)
        assert task.cancelled()


class Rows:
    """A copy that refuses what does not follow from what it has."""

    def __init__(self) -> None:
        self.rows: dict[int, Any] = {}

    def take(self, change: Any) -> None:
        if change.before is not None:
            assert self.rows.pop(change.before["id"]) == change.before
        if change.after is not None:
            assert change.after["id"] not in self.rows
            self.rows[change.after["id"]] = change.after


async def require_exact(pipeline: Pipeline, source: Server, schema: str, stop: asyncio.Event) -> None:
    """Begin with the newest dump, follow until `stop` is set and nothing is left, and compare with the table."""
    copy = Rows()
    async with Databus(pipeline.url("dump-api")) as databus:

        async def follow() -> None:
            async for change in databus.changes(f"{schema}.t"):
                copy.take(change)

        async def is_equal() -> bool:
            if following.done():
                following.result()
            async with printing(source) as query:
                found = await query(f"SELECT id, n FROM {schema}.t ORDER BY id")
            rows = [(row["id"], row["n"]) for _, row in sorted(copy.rows.items())]
            return rows == [(int(key), int(count)) for key, count in found]

        following = asyncio.create_task(follow())
        await stop.wait()
        await eventually(is_equal)
        await cancelled(following)


async def take(pipeline: Pipeline, schema: str) -> Manifest:
    async with DumpApi(pipeline.url("dump-api"), poll=0.05) as api:
        manifest = await api.wait(await api.request([f"{schema}.t"], Mode.CHUNKED))
    assert manifest.error is None
    return manifest


@pytest.mark.parametrize("dumps", [1, pytest.param(50, marks=pytest.mark.slow)])
async def test_no_change_is_lost_or_repeated_between_the_parts_of_a_dump_and_kafka(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, dumps: int
) -> None:
    await fill(execute)
    pipeline = make_pipeline(source, schema, dumps={"chunk_size": CHUNK, "rows_per_second": 20_000})
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    for _ in range(dumps):
        stop = asyncio.Event()
        async with changing(source, schema):
            manifest = await take(pipeline, schema)
            following = asyncio.create_task(require_exact(pipeline, source, schema, stop))
        positions = {chunk.position for chunk in manifest.chunks}
        assert len(positions) > 3
        assert manifest.position is None
        stop.set()
        await following


# T14: what a crash leaves is kept, and the places from which consumers read do not move
async def test_t14_a_dump_goes_on_after_its_process_was_killed_in_each_chunk(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    await fill(execute)
    pipeline = make_pipeline(source, schema, dumps={"chunk_size": CHUNK, "rows_per_second": 3000, "connections": 1})
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    begun: list[Manifest] = []
    async with changing(source, schema):
        async with DumpApi(pipeline.url("dump-api")) as api:
            dump = (await api.request([f"{schema}.t"], Mode.CHUNKED)).id
        for done in (1, 2, 3):

            async def has_chunks(done: int = done) -> bool:
                async with DumpApi(pipeline.url("dump-api")) as api:
                    manifest = await api.dump(dump)
                begun.append(manifest)
                return sum(chunk.position is not None for chunk in manifest.chunks) >= done

            await eventually(has_chunks)
            await asyncio.to_thread(pipeline.kill, "dump-api")
            await asyncio.to_thread(pipeline.start_all, "dump-api")
        async with DumpApi(pipeline.url("dump-api"), poll=0.05) as api:
            manifest = await api.wait(await api.dump(dump))
        assert (manifest.state, manifest.error) == ("complete", None)
        stop = asyncio.Event()
        following = asyncio.create_task(require_exact(pipeline, source, schema, stop))
    stop.set()
    await following
    planned = [each for each in begun if each.chunks]
    assert {str(each.kafka_offsets) for each in planned} == {str(manifest.kafka_offsets)}
    assert {each.transaction for each in planned} == {manifest.transaction}
    for earlier in planned:
        kept = [chunk for chunk in earlier.chunks if chunk.position]
        assert all(chunk in manifest.chunks for chunk in kept)


@one_server
async def test_a_table_that_ddl_changes_meanwhile_fails_the_dump(serve: Serve, schema: str, execute: Execute) -> None:
    await fill(execute)
    async with serve(dumps={"chunk_size": CHUNK, "rows_per_second": 2000, "connections": 1}) as api:
        path = await begin(api)
        await execute("ALTER TABLE t ADD COLUMN more INT")
        await eventually(lambda: is_in(api, path, "failed"))
        assert "t was changed by DDL during the dump" in (await api.get(path)).json()["error"]


@one_server
async def test_a_dump_goes_on_after_the_database_was_lost_in_the_middle_of_a_file(
    serve: Serve, schema: str, execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(execute)
    wait = ReadLimits.wait
    failed = asyncio.Event()

    async def lost(limits: ReadLimits) -> None:
        if failed.is_set():
            return await wait(limits)
        failed.set()
        raise SourceUnavailable("the connection was lost")

    monkeypatch.setattr(chunked, "_RETRY_SECONDS", 0.1)
    async with serve(dumps={"chunk_size": CHUNK, "rows_per_second": 3000, "connections": 1}) as api:
        path = await begin(api)
        monkeypatch.setattr(ReadLimits, "wait", lost)  # it is called when rows were written
        await eventually(lambda: is_in(api, path, "complete"))
        assert failed.is_set()
        manifest = (await api.get(path)).json()
        assert sorted(int(row[0]) for row in await api.rows(manifest, f"{schema}.t")) == list(range(ROWS))


@one_server
async def test_tables_without_an_integer_key_are_one_part_each(serve: Serve, schema: str, execute: Execute) -> None:
    await execute("CREATE TABLE a (id VARCHAR(40) PRIMARY KEY)")
    await execute("CREATE TABLE b (id INT)")
    await execute("CREATE TABLE empty (id INT PRIMARY KEY)")
    await execute("INSERT INTO a SELECT CONCAT(seq, REPEAT('x', 20)) FROM seq_1_to_3000")
    await execute("INSERT INTO b SELECT seq FROM seq_1_to_3000")
    async with serve(dumps={"chunk_size": "16 KiB", "formats": ["jsonl", "parquet", "canal-json"]}) as api:
        path = (await api.post("/v1/dumps", json={"mode": "chunked"})).headers["Location"]
        await eventually(lambda: is_in(api, path, "complete"))
        manifest = (await api.get(path)).json()
        assert [chunk["table"] for chunk in manifest["chunks"]] == [f"{schema}.{each}" for each in ("a", "b", "empty")]
        assert all(chunk["position"]["file"] for chunk in manifest["chunks"])
        assert manifest["formats"] == ["jsonl", "parquet"]  # the publisher's formats need one position
        assert len(await api.rows(manifest, f"{schema}.a")) == len(await api.rows(manifest, f"{schema}.b")) == 3000


async def begin(api: Api) -> str:
    """Request a chunked dump, and wait until a chunk is complete. Return its path."""
    path: str = (await api.post("/v1/dumps", json={"mode": "chunked"})).headers["Location"]

    async def has_chunk() -> bool:
        return any(chunk["position"] for chunk in (await api.get(path)).json()["chunks"])

    await eventually(has_chunk)
    return path


async def is_in(api: Api, path: str, state: str) -> bool:
    return bool((await api.get(path)).json()["state"] == state)

"""Where a pipeline without progress begins: `reader.start`, on both kinds of database."""

import asyncio

import pytest

from common.connections import Execute, session_on
from common.pipelines import Changes, Consume, MakePipeline
from common.server_time import next_second
from databus_binlog import Position
from databus_binlog.session import Session
from databus_core.dump_client import DumpApi
from devstack import Server
from devstack.pipeline import Pipeline


def spawn(pipeline: Pipeline) -> None:
    pipeline.spawn("publisher")
    pipeline.spawn("reader")


async def position(server: Server) -> Position:
    async with session_on(server) as session:
        return await session.current_position()


async def next_ids(consumer: Changes, count: int) -> list[int]:
    return [int(row[0]) for message in await consumer.until(count) for row in message["Rows"]]


@pytest.mark.parametrize("form", ["file", "gtid", "time"])
async def test_a_pipeline_begins_at_a_position(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume, form: str
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    here = await position(source)
    time = await next_second(source)
    await execute("INSERT INTO t VALUES (2)")
    await execute("INSERT INTO t VALUES (3)")
    start = {
        "file": f"{here.file}:{here.offset}",
        "gtid": f"gtid:{here.gtid_set}",
        "time": f"time:{time}",
    }[form]
    pipeline = make_pipeline(source, schema, reader={"start": start})
    spawn(pipeline)
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    assert await next_ids(consumer, 2) == [2, 3]
    # After a start by GTIDs the reader also resumes by GTIDs. The progress's set includes what was executed before
    # `here`, so nothing is repeated.
    await asyncio.to_thread(pipeline.kill, "reader")
    await execute("INSERT INTO t VALUES (4)")
    pipeline.spawn("reader")
    assert await next_ids(consumer, 1) == [4]


async def test_a_pipeline_begins_where_a_dump_ends(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    dumping = make_pipeline(source, schema)
    await asyncio.to_thread(dumping.start_all, "publisher", "reader", "dump-api")
    await execute("INSERT INTO t VALUES (2)")
    async with DumpApi(dumping.url("dump-api"), poll=0.1) as client:
        dump = (await client.take(["*.*"])).id
    await execute("INSERT INTO t VALUES (3)")
    second = make_pipeline(source, schema, reader={"start": f"dump:{dump}"}, dumps={"url": dumping.url("dump-api")})
    spawn(second)
    assert await next_ids(await changes(f"{second.name}.{schema}.t"), 1) == [3]


async def test_an_impossible_start_is_reported_in_one_line(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    here = await position(source)
    await execute("INSERT INTO t VALUES (1)")
    async with session_on(source) as session:
        inside = await offset_inside(session, here)
    other = "0-1-9" if source.kind == "mysql" else "00112233-4455-6677-8899-aabbccddeeff:1-5"
    for start, said in (
        (f"{here.file}:{inside}", f"{here.file}:{inside} is inside a transaction"),
        ("no-such-log.000001:4", "the server has no file no-such-log.000001"),
        (f"gtid:{other}", f"is not a {source.kind} GTID set"),
        ("time:2001-01-01T00:00:00Z", "so it may lack others since 2001-01-01T00:00:00Z"),
        ("time:2101-01-01T00:00:00Z", "has no transaction of 2101-01-01T00:00:00Z or later, it ends at 20"),
    ):
        pipeline = make_pipeline(source, schema, reader={"start": start})
        spawn(pipeline)
        await asyncio.to_thread(pipeline.wait_ended, "reader", 90)
        assert said in pipeline.log("reader").read_text().splitlines()[-1]


async def offset_inside(session: Session, start: Position) -> int:
    """Return the offset of the second event of the transaction that starts at a position."""
    rows = await session.query(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset} LIMIT 2")
    return int(rows[1][1])


async def test_a_missing_dump_is_reported(make_pipeline: MakePipeline, source: Server, schema: str) -> None:
    pipeline = make_pipeline(source, schema, reader={"start": "dump:none"})
    await asyncio.to_thread(pipeline.start_all, "publisher", "dump-api")
    pipeline.spawn("reader")
    await asyncio.to_thread(pipeline.wait_ended, "reader", 30)
    assert "there is no dump none" in pipeline.log("reader").read_text().splitlines()[-1]

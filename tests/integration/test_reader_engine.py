"""`reader.engine: mysql-replication`: it publishes the same as the native engine, and refuses what it can't read."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from common.connections import Execute, session_on
from common.pipelines import Consume, MakePipeline
from devstack import Server
from devstack.pipeline import Pipeline

LIBRARY = "mysql-replication"
STATEMENTS = (
    "INSERT INTO t VALUES (1, 'é', 1.50, NULL), (2, NULL, -0.01, '2026-11-22 01:02:03.456')",
    "UPDATE t SET v = '日本' WHERE id = 1",
    "ALTER TABLE t ADD more ENUM('a', 'b')",
    "INSERT INTO t VALUES (3, '', 0, NULL, 'b')",
    "DELETE FROM t WHERE id = 2",
)


async def test_both_engines_publish_the_same(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), d DECIMAL(5,2), at DATETIME(3))")
    async with session_on(source) as session:
        start = await session.current_position()
    for statement in STATEMENTS:
        await execute(statement)
    begun = {"start": f"{start.file}:{start.offset}"}
    pipelines = [make_pipeline(source, schema, reader=begun | {"engine": engine}) for engine in ("native", LIBRARY)]
    for pipeline in pipelines:
        pipeline.spawn("publisher")
        pipeline.spawn("reader")
    consumers = [await changes(f"{pipeline.name}.{schema}.t") for pipeline in pipelines]

    logged, by_library = [await consumer.until(len(STATEMENTS)) for consumer in consumers]
    assert [message["Action"] for message in logged] == ["insert", "update", "alter", "insert", "delete"]
    assert by_library == logged

    await execute("INSERT INTO t VALUES (4, 'while they follow', NULL, NULL, NULL)")
    followed, by_library = [await consumer.until(1) for consumer in consumers]
    assert by_library == followed

    for pipeline in pipelines:
        await asyncio.to_thread(pipeline.kill, "reader")
    await execute("INSERT INTO t VALUES (5, 'while they are away', NULL, NULL, NULL)")
    for pipeline in pipelines:
        pipeline.spawn("reader")
    missed, by_library = [await consumer.until(1) for consumer in consumers]
    assert [row[0] for row in missed[0]["Rows"]] == [b"5"]
    assert by_library == missed


@pytest.mark.parametrize("engine", ["native", LIBRARY])
async def test_a_row_arrives_with_its_statement_if_the_format_publishes_it(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume, engine: str
) -> None:
    maxwell = {"format": "maxwell-json", "options": {"output_row_query": True}}
    pipeline = make_pipeline(source, schema, reader={"engine": engine}, publisher=maxwell)
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    if source.kind == "mysql":  # MariaDB logs statements by default
        await execute("SET SESSION binlog_rows_query_log_events = ON")
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    await execute("INSERT INTO t VALUES (1) /* é */")
    [message] = await (await changes(f"{pipeline.name}.{schema}.t")).until(1)
    assert message["query"] == "INSERT INTO t VALUES (1) /* é */"


async def test_a_reader_refuses_at_start_what_its_engine_cannot_read(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE plain (id INT PRIMARY KEY)")
    await execute("CREATE TABLE old (id INT PRIMARY KEY, size ENUM('groß', 'klein') CHARACTER SET latin1)")
    pipeline = make_pipeline(source, schema, reader={"engine": LIBRARY})
    refusal = (
        f"database {source.host}:{source.port}: mysql-replication can't read labels in latin1: "
        f"exclude the tables that contain {schema}.old.size; or set reader.engine to native"
    )
    checked = await asyncio.to_thread(check, pipeline)
    assert checked.returncode == 78
    assert f"failed: {refusal} " in checked.stderr.splitlines()[-1]

    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
    assert f"failed: {refusal} " in pipeline.log("reader").read_text().splitlines()[-1]

    await execute("DROP TABLE old")
    checked = await asyncio.to_thread(check, pipeline)
    assert (checked.returncode, checked.stdout) == (0, "databus-reader: ready\n")


async def test_a_value_that_its_engine_cannot_read_stops_a_reader(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, elapsed TIME(1))")
    pipeline = make_pipeline(source, schema, reader={"engine": LIBRARY})
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    await execute("INSERT INTO t VALUES (1, '-00:00:00.1')")
    await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
    refusal = f"column elapsed of {schema}.t: mysql-replication can't read a negative time with a fraction"
    assert refusal in pipeline.log("reader").read_text().splitlines()[-1]


def check(pipeline: Pipeline) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("databus-reader")
    command = [program, "--config", pipeline.config, "--check"]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

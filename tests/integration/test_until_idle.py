"""Reader and publisher with `--until-idle` end when everything in the binlog is in Kafka."""

import time

import pytest

from common.connections import Execute, session_on
from common.pipelines import Consume, MakePipeline, run_until_idle
from databus_core.kafka_progress import read_progress
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from devstack import Server

pytestmark = pytest.mark.mysql_in_slow


async def test_each_run_publishes_what_was_written_since_the_last_one(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    pipeline = make_pipeline(source, schema)
    await run_until_idle(pipeline)  # the first run starts at the end of the binlog
    await execute("INSERT INTO t VALUES (1), (2)")
    await run_until_idle(pipeline)
    await execute("INSERT INTO t VALUES (3)")
    await run_until_idle(pipeline)
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(2)
    assert [message["Rows"] for message in found] == [[[b"1"], [b"2"]], [[b"3"]]]


async def test_a_run_without_captured_changes_moves_the_position_to_the_end_of_the_binlog(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    pipeline = make_pipeline(source, schema, "nothing")
    await run_until_idle(pipeline)
    for number in range(5):
        await execute("INSERT INTO t VALUES (%s)", number)
    async with session_on(source) as session:
        end = await session.current_position()
    await run_until_idle(pipeline)
    progress = await read_progress(load(pipeline.config))
    assert progress
    assert progress.transaction == 0
    assert progress.position
    assert (progress.position.file, progress.position.offset) >= (end.file, end.offset)


@pytest.mark.parametrize("statement", ["INSERT INTO t VALUES (1)", "FLUSH BINARY LOGS"])
async def test_the_progress_of_a_new_pipeline_without_captured_changes_has_a_recent_time(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, statement: str
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with session_on(source) as session:
        begin = await session.current_position()
    before = int(time.time())
    await execute(statement)
    pipeline = make_pipeline(source, schema, "nothing", reader={"start": f"{begin.file}:{begin.offset}"})
    await run_until_idle(pipeline)
    progress = await read_progress(load(pipeline.config))
    assert progress
    assert progress.time_us >= before * 1_000_000


@pytest.mark.parametrize("heal", ["auto", "manual"])
@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_run_that_leaves_a_table_in_doubt_ends_and_fails(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume, heal: str
) -> None:
    """The publisher parks the table, at any moment; the cause persists, so no load of it succeeds."""
    for table in ("t", "other"):
        await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
    routes = [{"match": [f"{schema}.t"], "key": ["v"]}, {"match": ["*.*"]}]
    pipeline = make_pipeline(source, schema, publisher={"routes": routes}, doubt={"heal": heal})
    await run_until_idle(pipeline)
    await execute("ALTER TABLE t DROP COLUMN v")
    await execute("INSERT INTO t VALUES (1)")
    await execute("INSERT INTO other VALUES (1, 1)")
    await run_until_idle(pipeline, in_doubt=f"{schema}.t")
    [message] = await (await changes(f"{pipeline.name}.{schema}.other")).until(1)
    assert message["Rows"] == [[b"1", b"1"]]
    if heal == "auto":
        await execute("ALTER TABLE t ADD COLUMN v INT")
        await run_until_idle(pipeline)
        assert not (await read_states(load(pipeline.config)))[0].doubts

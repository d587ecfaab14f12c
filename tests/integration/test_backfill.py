"""Backfills of tables through a running pipeline: each row once, in the place where it is exact."""

from common.connections import Execute
from common.pipelines import Consume, MakePipeline, run_until_idle
from databus_core.kafka_table_states import read_states, write_backfills
from databus_core.settings import load
from databus_core.table_states import new_backfills
from devstack import Server


async def test_a_pipeline_can_start_with_a_snapshot(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    await execute("CREATE TABLE none (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, 'c')")
    pipeline = make_pipeline(source, schema, reader={"start": "snapshot"})
    await run_until_idle(pipeline)
    states, _ = await read_states(load(pipeline.config))
    assert {each.table: states.state(each.id) for each in states.backfills.values()} == {"t": "done", "none": "done"}
    await execute("INSERT INTO t VALUES (4, 'd')")
    await run_until_idle(pipeline)
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(2)
    rows = [[b"1", b"a"], [b"2", None], [b"3", b"c"]]
    assert [(each["Action"], each["Rows"]) for each in found] == [("insert", rows), ("insert", [[b"4", b"d"]])]


async def test_a_table_can_be_loaded_on_demand(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    await execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    pipeline = make_pipeline(source, schema)
    await run_until_idle(pipeline)
    settings = load(pipeline.config)
    [backfill] = new_backfills([(schema, "t")], clean=True)
    await write_backfills(settings, [backfill])
    await run_until_idle(pipeline)
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(2)
    assert [each["Action"] for each in found] == ["truncate", "insert"]
    assert found[1]["Rows"] == [[b"1", b"a"], [b"2", b"b"]]
    states, _ = await read_states(settings)
    assert states.progress[backfill.id].rows == 2

"""T30: the progress in Kafka is gone. Such a pipeline is not new: only a reset makes it begin again."""

import asyncio
import secrets

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from common.connections import Execute
from common.pipelines import Consume, MakePipeline, run_until_idle
from databus_cli.__main__ import main
from databus_core import names
from databus_core.kafka_history import SchemaHistory, read_history
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress, Reset
from databus_core.settings import load
from devstack import Server
from devstack.pipeline import Pipeline

_REMEDY = "databus pipeline reset"

pytestmark = pytest.mark.parametrize("source", ["mariadb"], indirect=True)


async def delete(kafka: Server, *topics: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await admin.start()
    await admin.delete_topics(list(topics))
    await admin.close()


async def reset(pipeline: Pipeline, *options: str) -> int:
    """Run `databus pipeline reset`, and return its exit code."""
    return await asyncio.to_thread(main, ["pipeline", "reset", *options, "--config", str(pipeline.config)])


async def refusal(pipeline: Pipeline) -> str:
    """Wait until the publisher has ended, and return its last line."""
    await asyncio.to_thread(pipeline.wait_ended, "publisher", 60)
    return pipeline.log("publisher").read_text().splitlines()[-1]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
async def test_t30_a_progress_topic_that_was_deleted_stops_the_pipeline_until_it_is_reset(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume, delivery: str
) -> None:
    pipeline = make_pipeline(source, schema, publisher={"delivery": delivery})
    topic = f"{pipeline.name}.{schema}.t"
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await run_until_idle(pipeline)
    await execute("INSERT INTO t VALUES (1)")
    await run_until_idle(pipeline)
    await delete(pipeline.kafka, names.progress_topic(pipeline.name))
    await execute("INSERT INTO t VALUES (2)")
    pipeline.spawn("publisher")
    last = await refusal(pipeline)
    assert f"topic {names.progress_topic(pipeline.name)} has no progress" in last
    assert f"topic {names.schema_topic(pipeline.name)}" in last
    assert f"topics with records: 1, such as {topic}" in last
    assert "Redis" in last
    assert _REMEDY in last
    assert await reset(pipeline, "--yes") == 0
    await run_until_idle(pipeline)  # begins at the end of the binlog
    await execute("INSERT INTO t VALUES (3)")
    await run_until_idle(pipeline)
    found = await (await changes(topic)).until(2)
    assert [row for message in found for row in message["Rows"]] == [[b"1"], [b"3"]]


@pytest.mark.slow
async def test_t30_a_progress_topic_that_is_deleted_while_the_pipeline_runs_stops_it(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    pipeline = make_pipeline(source, schema)
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    await execute("INSERT INTO t VALUES (1)")
    await (await changes(f"{pipeline.name}.{schema}.t")).until(1)
    await delete(pipeline.kafka, names.progress_topic(pipeline.name))
    await execute("INSERT INTO t VALUES (2)")
    assert _REMEDY in await refusal(pipeline)


async def test_a_reset_begins_again_at_reader_start_and_counts_transactions_on(
    make_pipeline: MakePipeline,
    source: Server,
    schema: str,
    execute: Execute,
    changes: Consume,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pipeline = make_pipeline(source, schema)
    settings = load(pipeline.config)
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    await execute("INSERT INTO t VALUES (1)")
    await (await changes(f"{pipeline.name}.{schema}.t")).until(1)
    assert await reset(pipeline, "--yes") == 1
    assert "is the active reader: stop reader and publisher first" in capsys.readouterr().err
    for service in ("reader", "publisher"):
        await asyncio.to_thread(pipeline.stop, service)
    assert await reset(pipeline) == 2
    assert "confirm it with --yes" in capsys.readouterr().err
    before = await read_progress(settings)
    assert before
    assert before.position
    assert await reset(pipeline, "--yes") == 0
    assert f"everything before {before.position.file}:{before.position.offset}" in capsys.readouterr().err
    after = await read_progress(settings)
    assert after
    assert after.transaction > before.transaction
    assert after == Progress(transaction=after.transaction, reset=Reset(after.transaction), routes=before.routes)
    assert await read_history(settings) == SchemaHistory()
    await run_until_idle(pipeline)
    assert await read_history(settings) != SchemaHistory()


async def test_a_pipeline_is_new_although_others_have_written_to_a_topic_without_its_name(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    for _ in range(2):
        pipeline = make_pipeline(source, schema, publisher={"topic": "{schema}.{table}"})
        await run_until_idle(pipeline)
        await execute("INSERT INTO t VALUES (%s)", secrets.randbits(30))
        await run_until_idle(pipeline)

"""Tasks of docs/guide/tasks.md: a filter is changed, and a pipeline goes on in an empty Kafka."""

import asyncio
import json
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from common.connections import Execute
from common.pipelines import Consume, MakePipeline, run_until_idle, upserted
from databus_cli.__main__ import main
from devstack import Server
from devstack.pipeline import Pipeline

pytestmark = pytest.mark.parametrize("source", ["mariadb"], indirect=True)


async def command(pipeline: Pipeline, *arguments: str) -> None:
    """Run `databus`, which succeeds."""
    assert await asyncio.to_thread(main, [*arguments, "--config", str(pipeline.config)]) == 0


def configure(pipeline: Pipeline, section: str, **values: Any) -> None:
    """Change the configuration file."""
    settings = json.loads(pipeline.config.read_text())
    settings[section] |= values
    pipeline.config.write_text(json.dumps(settings))


@pytest.fixture
async def published(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute) -> Pipeline:
    """A pipeline that has published rows 1 and 2, and does not run."""
    await execute("CREATE TABLE t (id INT PRIMARY KEY, state VARCHAR(9))")
    pipeline = make_pipeline(source, schema)
    await run_until_idle(pipeline)
    await execute("INSERT INTO t VALUES (1, 'open'), (2, 'closed')")
    await run_until_idle(pipeline)
    return pipeline


async def test_a_filter_holds_from_the_next_start_and_a_load_brings_consumers_to_it(
    published: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    consumer = await changes(f"{published.name}.{schema}.t")
    assert upserted(await consumer.until(1)) == {b"1": b"open", b"2": b"closed"}
    where = [{"column": "state", "equals": "open"}]
    configure(published, "publisher", routes=[{"match": ["*.*"], "where": where}])
    await execute("INSERT INTO t VALUES (3, 'closed'), (4, 'open')")
    await run_until_idle(published)
    assert upserted(await consumer.until(1)) == {b"4": b"open"}
    await command(published, "backfill", "start", f"{schema}.t", "--clean", "--no-wait")
    await run_until_idle(published)
    truncate, *rows = await consumer.until(2)
    assert truncate["Action"] == "truncate"
    assert upserted(rows) == {b"1": b"open", b"4": b"open"}


@pytest.mark.parametrize("position", ["snapshot", "known"])
async def test_a_pipeline_goes_on_in_an_empty_kafka(
    published: Pipeline,
    schema: str,
    execute: Execute,
    changes: Consume,
    capsys: pytest.CaptureFixture[str],
    position: str,
) -> None:
    await command(published, "status", "--json")
    known = f"gtid:{json.loads(capsys.readouterr().out)['progress']['gtid_set']}"
    await lose_topics_of(published)
    await execute("DELETE FROM t WHERE id = 1")
    await execute("INSERT INTO t VALUES (3, 'open')")
    published.spawn("publisher")
    await asyncio.to_thread(published.wait_ended, "publisher", 60)
    assert "databus pipeline reset" in published.log("publisher").read_text().splitlines()[-1]
    await command(published, "pipeline", "reset", "--to", known if position == "known" else "snapshot", "--yes")
    await run_until_idle(published)
    found = await (await changes(f"{published.name}.{schema}.t")).until(2)
    if position == "known":
        assert [(each["Action"], each["Rows"][0][0]) for each in found] == [("delete", b"1"), ("insert", b"3")]
    else:
        assert found[0]["Action"] == "truncate"
        assert upserted(found) == {b"2": b"closed", b"3": b"open"}


async def lose_topics_of(pipeline: Pipeline) -> None:
    """Delete all topics of a pipeline, as if Kafka was lost."""
    admin = AIOKafkaAdminClient(bootstrap_servers=pipeline.kafka.url)
    await admin.start()
    try:
        await admin.delete_topics([topic for topic in await admin.list_topics() if pipeline.name in topic])
    finally:
        await admin.close()

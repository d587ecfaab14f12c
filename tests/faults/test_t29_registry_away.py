"""T29: the schema registry is away, or does not answer, when a table needs a new schema."""

import asyncio
import os
import signal

import pytest

from common.avro_consumer import avro_consumer
from common.connections import Execute
from common.pipelines import MakePipeline
from common.waiting import eventually
from devstack import Server, Stack
from devstack.pipeline import Pipeline


@pytest.fixture
def source(mariadb: Server) -> Server:
    return mariadb


def opened(pipeline: Pipeline) -> int:
    """Count the generations (see `databus_core.pipe`) so far. A start may open two: it ends an open one."""
    return pipeline.log("publisher").read_text().count(" generation_opened: ")


async def trouble(pipeline: Pipeline, times: int) -> None:
    """Wait until the publisher has logged this many failures of the registry; meanwhile the publisher must be alive."""

    async def complained() -> bool:
        assert (await asyncio.to_thread(pipeline.get, "publisher", "/healthz")).status_code == 200
        return pipeline.log("publisher").read_text().count("schema registry http") >= times

    await eventually(complained, seconds=120)


@pytest.mark.parametrize(
    "hangs", [pytest.param(False, id="gone"), pytest.param(True, id="hangs", marks=pytest.mark.slow)]
)
async def test_t29_rows_wait_for_the_schema_registry_and_arrive_once(
    hangs: bool, make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, kafka: Server, own: Stack
) -> None:
    registry = await asyncio.to_thread(own.start, "registry")
    route = {"match": ["*.*"], "format": "debezium-avro", "options": {"schema_registry_url": registry.url}}
    pipeline = make_pipeline(source, schema, publisher={"routes": [route]}, log={"level": "debug"})
    await execute("CREATE TABLE old (id INT PRIMARY KEY)")
    await execute("CREATE TABLE new (id INT PRIMARY KEY)")
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher")
    await execute("INSERT INTO old VALUES (1)")
    async with (
        avro_consumer(kafka, registry, f"{pipeline.name}.{schema}.old") as old,
        avro_consumer(kafka, registry, f"{pipeline.name}.{schema}.new") as new,
    ):
        assert [key["id"] for key, _ in await old.read(1)] == [1]
        before = opened(pipeline)

        pid = next(each.pid for each in own.status() if each.kind == "registry")
        assert pid
        if hangs:
            os.kill(pid, signal.SIGSTOP)
        else:
            await asyncio.to_thread(own.kill, "registry")
        await execute("INSERT INTO old VALUES (2)")
        await execute("BEGIN")
        await execute("INSERT INTO old VALUES (3)")
        await execute("INSERT INTO new VALUES (1)")
        await execute("COMMIT")
        await trouble(pipeline, times=2)
        assert opened(pipeline) == before, "a generation was opened while the registry was away"
        if hangs:
            os.kill(pid, signal.SIGCONT)
        else:
            await asyncio.to_thread(own.start, "registry")

        await execute("INSERT INTO old VALUES (4)")
        await execute("INSERT INTO new VALUES (2)")
        assert [key["id"] for key, _ in await old.read(3)] == [2, 3, 4]
        assert [key["id"] for key, _ in await new.read(2)] == [1, 2]
    assert " leadership_lost: " not in pipeline.log("publisher").read_text()

"""The manifest of a dump says from which offsets on all records are newer than the dump."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from common.connections import Execute
from common.pipelines import MakePipeline, decoded
from common.waiting import eventually, throughout
from databus_binlog import Position
from databus_core.errors import DumpUnusable
from databus_core.manifest import Manifest, State
from databus_core.names import progress_topic
from databus_core.pipeline_passed import wait_until_passed
from databus_core.progress import Progress, encode_progress
from databus_core.settings import load
from databus_dump_api.passed import DumpTopics
from devstack import Server
from integration.dump_api import Api, create_topic, produce

pytestmark = pytest.mark.mysql_in_slow


async def test_records_from_the_offsets_on_are_newer_than_the_dump(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, kafka: Server
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    pipeline = make_pipeline(source, schema, reader={"start": "earliest"})
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader", "dump-api")
    topic = f"{pipeline.name}.{schema}.t"
    await execute("INSERT INTO t VALUES (1)")
    async with Api(base_url=pipeline.url("dump-api")) as api:
        first = await api.take_dump()
        passed = await passed_of(api, first["id"])
        assert passed["transaction"] >= first["transaction"]

        await asyncio.to_thread(pipeline.stop, "reader")
        await execute("INSERT INTO t VALUES (2)")
        second = (await api.take_dump())["id"]

        async def not_passed() -> bool:
            return (await api.get(f"/v1/dumps/{second}")).json()["passed"] is None

        await throughout(2, not_passed)
        await asyncio.to_thread(pipeline.start_all, "reader")
        later = await passed_of(api, second)
        assert later["transaction"] > passed["transaction"]
        await execute("INSERT INTO t VALUES (3)")

        async with AIOKafkaConsumer(bootstrap_servers=kafka.url, isolation_level="read_committed") as consumer:
            for moment, expected in (passed, b"2"), (later, b"3"):
                partition = TopicPartition(topic, 0)
                consumer.assign([partition])
                consumer.seek(partition, moment["offsets"][topic]["0"])
                async with asyncio.timeout(30):
                    record = await consumer.getone()
                assert decoded(record)["Rows"] == [[expected]]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_pipeline_that_failed_over_and_back_has_not_passed_the_dump(
    make_pipeline: MakePipeline, source: Server, kafka: Server, schema: str
) -> None:
    """Some changes that the dump has were published with positions of another server."""
    settings = load(make_pipeline(source, schema).config)
    position = Position("", "log.000002", 400)
    manifest = Manifest(
        id="dump-1",
        created=datetime.now(UTC),
        pipeline=settings.name,
        state=State.COMPLETE,
        source="mariadb 10.11 a",
        position=position,
        transaction=7,
    )
    topic = progress_topic(settings.name)
    await create_topic(kafka, topic)
    await produce(kafka, topic, encode_progress(Progress(position, 9, server="a", other_log_until=7)))
    assert (await wait_until_passed(settings, manifest, DumpTopics(settings, manifest))).transaction == 9
    await produce(kafka, topic, encode_progress(Progress(position, 9, server="a", other_log_until=8)))
    with pytest.raises(DumpUnusable, match="after dump dump-1 began, the pipeline failed over"):
        await wait_until_passed(settings, manifest, DumpTopics(settings, manifest))


async def passed_of(api: Api, dump: str) -> dict[str, Any]:
    async def passed() -> dict[str, Any] | None:
        found: dict[str, Any] | None = (await api.get(f"/v1/dumps/{dump}")).json()["passed"]
        return found

    moment = await eventually(passed)
    assert moment
    return moment

"""The manifest of a dump says from which offsets on all records are newer than the dump."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from common.connections import Execute
from common.pipelines import MakePipeline, decoded
from common.waiting import eventually, throughout
from devstack import Server
from integration.dump_api import Api


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


async def passed_of(api: Api, dump: str) -> dict[str, Any]:
    async def passed() -> dict[str, Any] | None:
        found: dict[str, Any] | None = (await api.get(f"/v1/dumps/{dump}")).json()["passed"]
        return found

    moment = await eventually(passed)
    assert moment
    return moment

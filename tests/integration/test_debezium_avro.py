"""`debezium-avro` from the database to consumers, who read it with the schemas of a real registry."""

import asyncio
from typing import Any

import httpx
import pytest

from common.avro_consumer import avro_consumer
from common.connections import Execute
from common.pipelines import MakePipeline
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from devstack import Server


async def test_consumers_read_rows_by_the_schemas_of_the_registry(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, kafka: Server, schema_registry: Server
) -> None:
    options = {"schema_registry_url": schema_registry.url, "provide_transaction_metadata": True}
    route = {"match": ["*.*"], "format": "debezium-avro", "options": options}
    pipeline = make_pipeline(source, schema, publisher={"routes": [route]})
    topic, statements, transactions = f"{pipeline.name}.{schema}.t", pipeline.name, f"{pipeline.name}.transaction"
    await execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher")
    await execute("INSERT INTO t VALUES (1, 'Anne'), (2, NULL)")
    await execute("UPDATE t SET name = 'Zoë' WHERE id = 1")
    await execute("DELETE FROM t WHERE id = 2")

    async with avro_consumer(kafka, schema_registry, topic) as rows:
        assert [(key["id"], value and images(value)) for key, value in await rows.read(5)] == [
            (1, ("c", None, {"id": 1, "name": "Anne"})),
            (2, ("c", None, {"id": 2, "name": None})),
            (1, ("u", {"id": 1, "name": "Anne"}, {"id": 1, "name": "Zoë"})),
            (2, ("d", {"id": 2, "name": None}, None)),
            (2, None),
        ]
        await execute("ALTER TABLE t ADD COLUMN price DECIMAL(10,2)")
        await execute("INSERT INTO t VALUES (3, 'Eve', 19.99)")
        [(key, value)] = await rows.read(1)
        assert (key, str(value["after"]["price"])) == ({"id": 3}, "19.99")
        first, last = rows.ids[0], rows.ids[-1]
        assert rows.ids == [first] * 4 + [last]
    async with avro_consumer(kafka, schema_registry, statements) as consumer:
        [(_, change)] = await consumer.read(1)
        assert change["ddl"].endswith("ADD COLUMN price DECIMAL(10,2)")
    async with avro_consumer(kafka, schema_registry, transactions) as consumer:
        (_, began), (_, ended) = await consumer.read(2)
        assert (began["status"], ended["status"], ended["event_count"]) == ("BEGIN", "END", 2)

    async with httpx.AsyncClient(base_url=schema_registry.url) as registry:
        subjects = [name for name in (await registry.get("/subjects")).json() if name.startswith(pipeline.name)]
        topics = (topic, statements, transactions)
        assert sorted(subjects) == sorted(f"{topic}-{part}" for topic in topics for part in ("key", "value"))
        versions = f"/subjects/{topic}-value/versions"
        assert (await registry.get(versions)).json() == [1, 2]
        assert [(await registry.get(f"{versions}/{number}")).json()["id"] for number in (1, 2)] == [first, last]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_schema_that_the_registry_refuses_parks_its_table_until_it_is_allowed(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, kafka: Server, schema_registry: Server
) -> None:
    route = {"match": ["*.*"], "format": "debezium-avro", "options": {"schema_registry_url": schema_registry.url}}
    pipeline = make_pipeline(source, schema, publisher={"routes": [route]})
    for table in ("t", "other"):
        await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher")
    for table in ("t", "other"):
        await execute(f"INSERT INTO {table} VALUES (1)")
    topic = f"{pipeline.name}.{schema}.t"
    async with (
        avro_consumer(kafka, schema_registry, topic) as rows,
        avro_consumer(kafka, schema_registry, f"{pipeline.name}.{schema}.other") as others,
        httpx.AsyncClient(base_url=schema_registry.url) as registry,
    ):
        assert [value["after"] for _, value in await rows.read(1)] == [{"id": 1}]
        await registry.put(f"/config/{topic}-value", json={"compatibility": "BACKWARD"})
        # The registry would refuse this table's schema, but only the next row registers one, and then `a` is gone.
        await execute("ALTER TABLE t ADD COLUMN a INT NOT NULL")
        await execute("ALTER TABLE t DROP COLUMN a, ADD COLUMN b INT")
        await execute("INSERT INTO t VALUES (2, 2)")
        assert [value["after"] for _, value in await rows.read(1)] == [{"id": 2, "b": 2}]

        await execute("ALTER TABLE t ADD COLUMN c INT NOT NULL")
        await execute("INSERT INTO t VALUES (3, 3, 3)")
        await execute("INSERT INTO other VALUES (3)")
        assert [value["after"] for _, value in await others.read(2)] == [{"id": 1}, {"id": 3}]
        [doubt] = (await read_states(load(pipeline.config)))[0].doubts.values()
        assert doubt.reason == "schema_refused"
        assert f"is incompatible with subject {topic}-value: " in doubt.text

        await registry.put(f"/config/{topic}-value", json={"compatibility": "NONE"})
        assert [value["after"] for _, value in await rows.read(3)] == [
            {"id": 1, "b": None, "c": 0}, {"id": 2, "b": 2, "c": 0}, {"id": 3, "b": 3, "c": 3},
        ]  # fmt: skip


def images(value: dict[str, Any]) -> tuple[Any, ...]:
    return value["op"], value["before"], value["after"]

"""A pipeline begins with a snapshot, goes on with changes, and is reset to another one: as consumers of formats see it.

Each format is an output of its own, with one topic for all tables.
"""

import asyncio
import json
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from common.connections import Execute
from common.pipelines import MakePipeline, run_until_idle
from common.topics import ends_of
from databus_cli.__main__ import main
from devstack import Server
from devstack.pipeline import Pipeline

Row = dict[str, Any] | None

FORMATS: dict[str, dict[str, Any]] = {
    "debezium-json": {"schemas_enable": False, "skipped_operations": []},
    "maxwell-json": {},
    "canal-json": {},
}
ROUTES = [
    {"match": ["*.*"], "output": name, "format": name, "options": options, "topic": "{name}." + name}
    for name, options in FORMATS.items()
]


class Topics:
    """What the pipeline has published since the last call, in each format."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._offsets = dict.fromkeys(FORMATS, 0)

    async def debezium(self) -> list[tuple[str, str, str, Row]]:
        values = await self._next("debezium-json")
        sources = [value["source"] for value in values]
        return [(s["table"], v["op"], s["snapshot"], v["after"]) for v, s in zip(values, sources, strict=True)]

    async def maxwell(self) -> list[tuple[str, str, Row]]:
        return [(value["table"], value["type"], value["data"]) for value in await self._next("maxwell-json")]

    async def canal(self) -> list[tuple[str, str, list[Row] | None]]:
        return [(value["table"], value["type"], value["data"]) for value in await self._next("canal-json")]

    async def _next(self, format_name: str) -> list[dict[str, Any]]:
        """Return the values of the new records in a format's topic."""
        partition, found = TopicPartition(f"{self._pipeline.name}.{format_name}", 0), []
        async with AIOKafkaConsumer(
            bootstrap_servers=self._pipeline.kafka.url, isolation_level="read_committed", group_id=None
        ) as consumer:
            consumer.assign([partition])
            consumer.seek(partition, self._offsets[format_name])
            end = (await ends_of(self._pipeline.kafka, [partition]))[partition]
            while await consumer.position(partition) < end:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += [json.loads(record.value) for record in records if record.value is not None]
        self._offsets[format_name] = end
        return found


async def test_a_snapshot_and_a_reset_to_another_one_are_published_as_each_format_s_consumers_expect(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE a (id INT PRIMARY KEY)")
    await execute("CREATE TABLE b_empty (id INT PRIMARY KEY)")
    await execute("CREATE TABLE c (id INT PRIMARY KEY)")
    await execute("INSERT INTO a VALUES (1), (2), (3)")
    await execute("INSERT INTO c VALUES (1), (2)")
    settings = {"reader": {"start": "snapshot"}, "backfill": {"connections": 1}, "publisher": {"routes": ROUTES}}
    pipeline = make_pipeline(source, schema, **settings)
    topics = Topics(pipeline)

    await run_until_idle(pipeline)
    assert await topics.debezium() == [
        ("a", "r", "first", {"id": 1}), ("a", "r", "true", {"id": 2}), ("a", "r", "last_in_data_collection", {"id": 3}),
        ("c", "r", "first_in_data_collection", {"id": 1}), ("c", "r", "last", {"id": 2}),
    ]  # fmt: skip
    bootstrap = [
        ("a", "bootstrap-start", {}), *(("a", "bootstrap-insert", {"id": n}) for n in (1, 2, 3)),
        ("a", "bootstrap-complete", {}),
        ("b_empty", "bootstrap-start", {}), ("b_empty", "bootstrap-complete", {}),
        ("c", "bootstrap-start", {}), *(("c", "bootstrap-insert", {"id": n}) for n in (1, 2)),
        ("c", "bootstrap-complete", {}),
    ]  # fmt: skip
    assert await topics.maxwell() == bootstrap
    assert await topics.canal() == [
        ("a", "INSERT", [{"id": "1"}, {"id": "2"}, {"id": "3"}]), ("c", "INSERT", [{"id": "1"}, {"id": "2"}]),
    ]  # fmt: skip

    await execute("INSERT INTO b_empty VALUES (1)")
    await execute("DELETE FROM a WHERE id = 1")
    await run_until_idle(pipeline)
    assert await topics.debezium() == [("b_empty", "c", "false", {"id": 1}), ("a", "d", "false", None)]
    assert await topics.maxwell() == [("b_empty", "insert", {"id": 1}), ("a", "delete", {"id": 1})]
    assert await topics.canal() == [("b_empty", "INSERT", [{"id": "1"}]), ("a", "DELETE", [{"id": "1"}])]

    await execute("DELETE FROM b_empty")  # only the TRUNCATE shows it
    await execute("INSERT INTO a VALUES (4)")
    reset = ["pipeline", "reset", "--to", "snapshot", "--yes", "--config", str(pipeline.config)]
    assert await asyncio.to_thread(main, reset) == 0
    await run_until_idle(pipeline)
    assert await topics.debezium() == [
        ("a", "t", "false", None), ("a", "r", "first", {"id": 2}), ("a", "r", "true", {"id": 3}),
        ("a", "r", "last_in_data_collection", {"id": 4}),
        ("b_empty", "t", "false", None),
        ("c", "t", "false", None), ("c", "r", "first_in_data_collection", {"id": 1}), ("c", "r", "last", {"id": 2}),
    ]  # fmt: skip
    again = [("a", "bootstrap-insert", {"id": n}) for n in (2, 3, 4)]
    assert await topics.maxwell() == [bootstrap[0], *again, *bootstrap[4:]]  # Maxwell has no message for TRUNCATE
    assert await topics.canal() == [
        ("a", "TRUNCATE", None), ("a", "INSERT", [{"id": "2"}, {"id": "3"}, {"id": "4"}]),
        ("b_empty", "TRUNCATE", None),
        ("c", "TRUNCATE", None), ("c", "INSERT", [{"id": "1"}, {"id": "2"}]),
    ]  # fmt: skip

    await execute("UPDATE c SET id = 3 WHERE id = 2")
    await run_until_idle(pipeline)
    assert await topics.debezium() == [("c", "d", "false", None), ("c", "c", "false", {"id": 3})]
    assert await topics.maxwell() == [("c", "update", {"id": 3})]
    assert await topics.canal() == [("c", "UPDATE", [{"id": "3"}])]

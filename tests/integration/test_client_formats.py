"""Tables in different formats, read together: their changes make the same tables."""

import asyncio
import random
from typing import Any

import pytest

from common.connections import Execute, printing
from common.pipelines import Consume, MakePipeline
from databus import Change, Databus
from devstack import Server

pytestmark = pytest.mark.mysql_in_slow

FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "a": ("databus", {}),
    "b": ("debezium-json", {"skipped_operations": [], "provide_transaction_metadata": True}),
    "c": ("debezium-json", {"schemas_enable": False}),
    "d": ("maxwell-json", {"output_ddl": True}),
    "e": ("canal-json", {}),
}
#: an output whose topics look like those of a table in output `default`
COPIES = {"match": ["*.*"], "output": "copies", "format": "maxwell-json", "topic": "{name}.{schema}.{table}.copy"}
PARTITIONS = 3


class Replayed:
    """Tables as their changes make them: by key."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[int, str]] = {name: {} for name in FORMATS}

    def apply(self, change: Change) -> None:
        table = self.tables[change.definition.name]
        if change.action == "truncate":
            table.clear()
        if change.before:
            assert table.pop(change.before["id"]) == change.before["v"]
        if change.after:
            assert change.after["id"] not in table
            assert change.after["v"] not in table.values()  # a row that moves is deleted before it is inserted
            assert change.key == {"id": change.after["id"]}
            assert change.is_snapshot == (change.after == {"id": 500, "v": "old"})
            table[change.after["id"]] = change.after["v"]


async def test_tables_in_all_formats_are_read_together(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    """Each topic has several partitions, and updates move rows between them. A backfill loads a row of each."""
    for table in FORMATS:
        await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9))")
        await execute(f"INSERT INTO {table} VALUES (500, 'old')")
    routes = [
        {"match": [f"*.{table}"], "format": name, "options": options, "partition_by": "primary_key"}
        for table, (name, options) in FORMATS.items()
    ]
    settings = {"reader": {"start": "snapshot"}, "publisher": {"routes": [*routes, COPIES]}}
    pipeline = make_pipeline(source, schema, **settings)
    await changes(*(f"{pipeline.name}.{schema}.{table}" for table in FORMATS), partitions=PARTITIONS)
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")

    replayed, count = Replayed(), dict.fromkeys(FORMATS, 0)
    async with asyncio.timeout(60), Databus(pipeline.url("dump-api")) as databus:
        async for transaction in databus.changes(f"{schema}.*", start="earliest").transactions():
            for change in transaction.changes:
                replayed.apply(change)
                count[change.definition.name] += 1
            if all(number == 1 for number in count.values()):
                await write(execute, random.Random(5))
            if any(change.after == {"id": 1000, "v": "last"} for change in transaction.changes):
                break
    async with printing(source) as run:
        for table in FORMATS:
            rows = await run(f"SELECT id, v FROM {schema}.{table}")
            assert replayed.tables[table] == {int(number or 0): (v or b"").decode() for number, v in rows}, table
    assert min(count.values()) > 60


async def write(execute: Execute, chosen: random.Random) -> None:
    """Change the same rows of all tables, in the same transactions."""
    await execute("TRUNCATE TABLE b")
    await execute("TRUNCATE TABLE e")
    for _ in range(60):
        await execute("BEGIN")
        number, other, value = chosen.randrange(20), chosen.randrange(20), str(chosen.random())[:8]
        for table in FORMATS:
            await execute(f"DELETE FROM {table} WHERE id = %s", number)
            await execute(f"INSERT INTO {table} VALUES (%s, %s)", number, value)
            await execute(f"UPDATE IGNORE {table} SET id = id + 1 WHERE id = %s", other)
        await execute("COMMIT")
    await execute("BEGIN")
    for table in FORMATS:
        await execute(f"INSERT INTO {table} VALUES (1000, 'last')")
    await execute("COMMIT")

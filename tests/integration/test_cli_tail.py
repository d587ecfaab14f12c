"""`databus tail` and `databus sql` on a running pipeline."""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from common.connections import Execute, printing
from common.pipelines import MakePipeline
from devstack import Server
from devstack.pipeline import Pipeline

pytestmark = pytest.mark.mysql_in_slow

DATABUS = Path(sys.executable).parent / "databus"


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute) -> Pipeline:
    await execute("CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20), icon BLOB, kind ENUM('a', 'b'))")
    await execute("INSERT INTO orders VALUES (1, 'it''s', x'00ff', 'b'), (2, NULL, NULL, NULL)")
    pipeline = make_pipeline(source, schema)
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    return pipeline


async def printed(pipeline: Pipeline, command: str, *options: str) -> str:
    """Run a command that ends by itself. Return what it prints."""
    arguments = (command, *options, "--config", str(pipeline.config))
    process = await asyncio.create_subprocess_exec(DATABUS, *arguments, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(60):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_tail(pipeline: Pipeline, schema: str, execute: Execute, tmp_path: Path) -> None:
    store = str(tmp_path / "place.json")
    rows = await printed(pipeline, "tail", f"{schema}.o*", "--from", "snapshot", "--json", "--count", "2")
    first, second = map(json.loads, rows.splitlines())
    assert first["row"] == {"id": "1", "note": "it's", "icon": {"base64": "AP8="}, "kind": "2"}
    assert (second["action"], second["snapshot"], second["table"]) == ("insert", True, f"{schema}.orders")
    await printed(pipeline, "tail", "--from", "snapshot", "--store", store, "--count", "1")
    await execute("UPDATE orders SET note = 'two', kind = 'a' WHERE id = 2")
    await execute("DELETE FROM orders WHERE id = 1")
    await execute("ALTER TABLE orders ADD more INT")
    text = await printed(pipeline, "tail", "--store", store, "--count", "4")
    snapshot, update, delete, alter = text.strip().split("\n\n")
    assert re.match(r"\d{4}-\d\d-\d\d .*  snapshot  ", snapshot)
    assert update.splitlines()[1:] == [
        f"  UPDATE {schema}.orders",
        "      id = 2",
        "    ~ note = NULL → 'two'",
        "      icon = NULL",
        "    ~ kind = NULL → 'a'",
    ]
    assert delete.splitlines()[1:3] == [f"  DELETE {schema}.orders", "      id = 1"]
    assert alter.splitlines()[1].endswith(f"ADD more INT  -- {schema}.orders")


async def test_sql_makes_an_equal_copy(pipeline: Pipeline, source: Server, schema: str, execute: Execute) -> None:
    await execute("UPDATE orders SET note = 'x', icon = NULL WHERE id = 1")
    await execute("INSERT INTO orders VALUES (3, 'y', x'27', 'a')")
    await execute("DELETE FROM orders WHERE id = 2")
    sql = await printed(pipeline, "sql", "--from", "snapshot", "--count", "2")
    async with printing(source) as show:
        expected = await show(f"SELECT * FROM {schema}.orders")
        await show(f"DELETE FROM {schema}.orders")
        for statement in sql.splitlines():
            await show(statement)
        assert await show(f"SELECT * FROM {schema}.orders") == expected

"""A pipeline with `publisher.publish_partial` reads a server that logs no unchanged BLOB and TEXT values."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from common.connections import Execute, connected
from common.pipelines import Consume, MakePipeline, run_until_idle
from databus_cli.__main__ import main
from devstack import Server


@pytest.fixture
async def noblob(source: Server, schema: str) -> AsyncIterator[Execute]:
    """Execute statements in the schema, on a server with `binlog_row_image=NOBLOB`; it is restored afterwards."""
    async with connected(source) as execute:
        await execute("SET GLOBAL binlog_row_image = 'NOBLOB'")
        await execute("SET SESSION binlog_row_image = 'NOBLOB'")
        await execute(f"USE {schema}")
        yield execute
        await execute("SET GLOBAL binlog_row_image = 'FULL'")


async def test_updates_that_lack_values_are_published_or_become_dead_letters(
    make_pipeline: MakePipeline,
    source: Server,
    schema: str,
    noblob: Execute,
    changes: Consume,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await noblob("CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT)")
    routes = [
        {"match": ["*.*"]},
        {"match": ["*.*"], "output": "dip", "format": "dip", "topic": "{name}.dip"},
    ]
    pipeline = make_pipeline(source, schema, publisher={"publish_partial": True, "routes": routes})
    await run_until_idle(pipeline)  # the first run starts at the end of the binlog
    await noblob("INSERT INTO t (id) VALUES (1)")
    await noblob("UPDATE t SET a = 2")
    await noblob("UPDATE t SET b = 'new'")
    await run_until_idle(pipeline)
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(3)
    assert [message["Rows"] for message in found] == [
        [[b"1", None, None]],
        [[b"1", None, False], [b"1", b"2", False]],
        [[b"1", b"2", False], [b"1", b"2", b"new"]],
    ]
    capsys.readouterr()
    await asyncio.to_thread(main, ["deadletter", "list", "--json", "--config", str(pipeline.config)])
    letters = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["reason"], each["format"], each["row"]) for each in letters] == [("unencodable", "dip", 0)] * 2
    assert all("lacks the values of b, and format dip cannot express that" in each["error"] for each in letters)

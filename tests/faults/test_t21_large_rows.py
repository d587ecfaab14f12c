"""T21: large rows and transactions need little memory, and the rows after a large row are published."""

import asyncio
import json
import re
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from common.connections import connected
from common.pipelines import MakePipeline
from databus_core import names
from devstack import Kind, Server, Stack
from devstack.pipeline import Pipeline

pytestmark = pytest.mark.mysql_in_slow

_MEMORY = 200 * 2**20
_SERVICES = ("reader", "publisher")
_ROW = 200 * 2**20
#: a transaction of 250 MB: its rows, the bytes of text in each, and the much smaller limit of what Redis may hold
_ROWS, _TEXT, _BACKLOG = 250_000, 1000, 8 * 2**20
#: MySQL accepts no value that is larger than a tenth of its redo log
_REDO: dict[Kind, tuple[str, ...]] = {"mariadb": (), "mysql": ("--innodb-redo-log-capacity=3G",)}
_NUMBERS: dict[Kind, str] = {
    "mariadb": f"SELECT seq, RPAD(seq, {_TEXT}, 'x') FROM seq_1_to_{_ROWS}",
    "mysql": f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_ROWS})"
    f" SELECT /*+ SET_VAR(cte_max_recursion_depth = {_ROWS}) */ i, RPAD(i, {_TEXT}, 'x') FROM n",
}


@pytest.fixture(params=["mariadb", "mysql"])
async def source(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Server]:
    """A database that takes large rows."""
    stack = Stack(tmp_path / "own", own=True)
    yield await asyncio.to_thread(stack.start, request.param, "--max-allowed-packet=1G", *_REDO[request.param])
    await asyncio.to_thread(stack.discard)


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline, source: Server) -> Pipeline:
    async with connected(source) as execute:
        await execute("CREATE DATABASE shop")
        await execute("CREATE TABLE shop.t (id INT PRIMARY KEY, body LONGBLOB)")
    pipeline = make_pipeline(source, "shop", reader={"backlog_limit": _BACKLOG})
    await asyncio.to_thread(pipeline.start_all, *reversed(_SERVICES))
    return pipeline


async def read(pipeline: Pipeline, topic: str, count: int) -> tuple[list[bytes], dict[str, bytes]]:
    """Read this many rows, or records without a value; return the ids and the last record's headers."""
    ids: list[bytes] = []
    headers: dict[str, bytes] = {}
    async with (
        AIOKafkaConsumer(bootstrap_servers=pipeline.kafka.url, isolation_level="read_committed") as consumer,
        asyncio.timeout(240),
    ):
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 0)
        while len(ids) < count:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                for record in records:
                    headers = dict(record.headers)
                    ids += [b64decode(row[0]) for row in json.loads(record.value)["Rows"]] if record.value else [b""]
    return ids, headers


def memory(pipeline: Pipeline) -> dict[str, int]:
    """Return the peak memory of each service so far, in bytes."""
    status = {service: Path(f"/proc/{pipeline.pid(service)}/status").read_text() for service in _SERVICES}
    return {service: int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) * 1024 for service, text in status.items()}


async def test_t21_a_row_of_200_mb_becomes_a_dead_letter_in_little_memory(pipeline: Pipeline, source: Server) -> None:
    async with connected(source) as execute:
        await execute("INSERT INTO shop.t VALUES (1, 'a')")
        await execute(f"INSERT INTO shop.t VALUES (2, REPEAT('x', {_ROW}))")
        await execute("INSERT INTO shop.t VALUES (3, 'c')")
    assert (await read(pipeline, f"{pipeline.name}.shop.t", 2))[0] == [b"1", b"3"]
    _, letter = await read(pipeline, names.dead_letter_topic(pipeline.name), 1)
    assert (letter["schema"], letter["table"], letter["action"]) == (b"shop", b"t", b"insert")
    assert int(letter["bytes"]) > _ROW
    assert max(memory(pipeline).values()) < _MEMORY, memory(pipeline)


async def test_t21_a_transaction_many_times_the_backlog_needs_little_memory(pipeline: Pipeline, source: Server) -> None:
    async with connected(source) as execute:
        await execute("USE shop")
        await execute(f"INSERT INTO t {_NUMBERS[source.kind]}")
    ids, _ = await read(pipeline, f"{pipeline.name}.shop.t", _ROWS)
    assert sorted(map(int, ids)) == list(range(1, _ROWS + 1))
    assert max(memory(pipeline).values()) < _MEMORY, memory(pipeline)

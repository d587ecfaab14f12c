"""From the database to Kafka, on MariaDB: rows that are too large for Kafka, and delivery at least once."""

import asyncio
import json
from itertools import pairwise

import pytest

from common.connections import Execute, connected
from common.pipelines import Changes, Consume, MakePipeline
from databus_cli.__main__ import main
from devstack.pipeline import Pipeline


@pytest.fixture(params=["mariadb"])
def source(request: pytest.FixtureRequest) -> object:
    return request.getfixturevalue(request.param)


def start(pipeline: Pipeline) -> None:
    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    pipeline.wait("reader")


async def test_t21_a_row_larger_than_kafkas_limit_becomes_a_dead_letter_and_the_others_are_published(
    make_pipeline: MakePipeline, source, schema: str, execute: Execute, changes: Consume, capfdbinary
) -> None:
    pipeline = make_pipeline(source, schema)
    await execute("CREATE TABLE t (id INT PRIMARY KEY, body LONGTEXT)")
    start(pipeline)
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    await execute("INSERT INTO t VALUES (1, 'a'), (2, REPEAT('x', 2000000)), (3, 'c')")
    await execute("UPDATE t SET id = id + 10")
    await execute("DELETE FROM t")
    messages = [(m["Action"], [int(row[0]) for row in m["Rows"]]) for m in await consumer.until(6)]
    assert messages == [
        ("insert", [1]),
        ("insert", [3]),
        ("update", [1, 11]),
        ("update", [3, 13]),
        ("delete", [11]),
        ("delete", [13]),
    ]
    capfdbinary.readouterr()
    await asyncio.to_thread(main, ["deadletter", "list", "--json", "--config", str(pipeline.config)])
    letters = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [(letter["action"], letter["row"], letter["value"]) for letter in letters] == [
        ("insert", 1, True),
        ("update", 1, True),
        ("delete", 1, True),
    ]
    assert all(letter["gtid"] and letter["table"] == "t" for letter in letters)


async def test_with_delivery_at_least_once_all_rows_arrive_in_order_though_both_services_are_killed(
    make_pipeline: MakePipeline, source, schema: str, execute: Execute, changes: Consume
) -> None:
    """A row may be repeated, with all rows after it; only its first occurrence counts."""
    pipeline = make_pipeline(source, schema, publisher={"delivery": "at_least_once"})
    await execute("CREATE TABLE ledger (n INT PRIMARY KEY, text VARCHAR(100))")
    start(pipeline)
    disturbed = asyncio.Event()

    async def write() -> int:
        n = 0
        async with connected(source) as run:
            await run(f"USE {schema}")
            while not disturbed.is_set():
                await run("INSERT INTO ledger VALUES (%s, REPEAT('x', 100)), (%s, NULL)", n, n + 1)
                n += 2
            await run("INSERT INTO ledger VALUES (%s, 'last')", n)
        return n

    async def disturb(consumer: Changes) -> None:
        try:
            for victim in ("publisher", "reader", "publisher", "publisher"):
                await consumer.until(1)
                await asyncio.to_thread(pipeline.kill, victim)
                pipeline.spawn(victim)
        finally:
            disturbed.set()

    topic = f"{pipeline.name}.{schema}.ledger"
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(write())
        tasks.create_task(disturb(await changes(topic)))
    last, consumer, found = writing.result(), await changes(topic), []
    while last not in found:
        found += [int(row[0]) for message in await consumer.until(1) for row in message["Rows"]]
    highest = -1
    for n in found:
        assert n <= highest + 1  # a repetition or the next row: no row is skipped
        highest = max(highest, n)
    assert all(later == n + 1 or later <= n for n, later in pairwise(found))
    assert highest == last

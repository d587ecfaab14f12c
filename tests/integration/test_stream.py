"""From the database to Kafka: reader and publisher as processes, on MariaDB and MySQL."""

import asyncio

import pytest

from devstack import Server
from devstack.pipeline import Pipeline
from support import Changes, Consume, Execute, MakePipeline, connected


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, source: Server, schema: str) -> Pipeline:
    return make_pipeline(source, schema)


def start(pipeline: Pipeline) -> None:
    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    pipeline.wait("reader")


async def test_rows_of_every_action_arrive_with_their_table(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2), at DATETIME(3))")
    start(pipeline)
    await execute("INSERT INTO t VALUES (4294967295, 'Anne', 19.90, '2021-02-03 04:05:06.007'), (2, NULL, -0.5, NULL)")
    await execute("UPDATE t SET name = 'Zoë 🦊' WHERE id = 2")
    await execute("DELETE FROM t WHERE id = 2")
    await execute("ALTER TABLE t ADD COLUMN c TINYINT NOT NULL DEFAULT 7 FIRST")
    await execute("INSERT INTO t VALUES (1, 3, 'new', NULL, NULL)")
    await execute("DROP TABLE t")
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(6)
    assert [message["Action"] for message in found] == ["insert", "update", "delete", "alter", "insert", "drop"]
    inserted, updated, deleted, altered, after, dropped = found
    assert inserted["Rows"] == [
        [b"4294967295", b"Anne", b"19.90", b"2021-02-03 04:05:06.007"],
        [b"2", None, b"-0.50", None],
    ]
    assert updated["Rows"] == [[b"2", None, b"-0.50", None], [b"2", "Zoë 🦊".encode(), b"-0.50", None]]
    assert deleted["Rows"] == [updated["Rows"][1]]
    assert after["Rows"] == [[b"1", b"3", b"new", None, None]]
    assert [column["Name"] for column in inserted["Table"]["Columns"]] == ["id", "name", "price", "at"]
    assert [column["Name"] for column in after["Table"]["Columns"]] == ["c", "id", "name", "price", "at"]
    assert (inserted["Table"]["PKColumns"], after["Table"]["PKColumns"]) == ([0], [1])
    assert altered["Query"] == f"ALTER TABLE `{schema}`.t ADD COLUMN c TINYINT NOT NULL DEFAULT 7 FIRST"
    assert dropped["Key"]["Action"] == "DDL"
    positions = [message["Key"]["Pos"]["Pos"] for message in found]
    assert positions == sorted(positions)


async def test_a_pipeline_goes_on_where_it_was_stopped(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    await execute("INSERT INTO t VALUES (1)")
    assert (await consumer.until(1))[0]["Rows"] == [[b"1"]]
    for service in ("reader", "publisher"):
        await asyncio.to_thread(pipeline.stop, service)
    await execute("INSERT INTO t VALUES (2)")
    await execute("ALTER TABLE t ADD COLUMN name VARCHAR(9)")
    await execute("INSERT INTO t VALUES (3, 'c')")
    start(pipeline)
    old_row, _, new_row = await consumer.until(3)
    assert old_row["Rows"] == [[b"2"]]
    assert new_row["Rows"] == [[b"3", b"c"]]


async def test_rows_arrive_exactly_once_though_both_services_are_killed(
    pipeline: Pipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    """Every row carries the next number, every transaction two of them; the last row tells that nothing is to come."""
    await execute("CREATE TABLE ledger (n INT PRIMARY KEY, text VARCHAR(100))")
    start(pipeline)
    disturbed = asyncio.Event()

    async def write() -> int:
        n = 0
        async with connected(source) as run:
            await run(f"USE {schema}")
            while not disturbed.is_set():
                await run("BEGIN")
                await run("INSERT INTO ledger VALUES (%s, REPEAT('x', 100))", n)
                await run("INSERT INTO ledger VALUES (%s, NULL)", n + 1)
                await run("COMMIT")
                n += 2
            await run("INSERT INTO ledger VALUES (%s, 'last')", n)
        return n + 1

    async def disturb(consumer: Changes) -> None:
        for victim in ("reader", "publisher", "publisher", "reader"):
            await consumer.until(1)
            await asyncio.to_thread(pipeline.kill, victim)
            pipeline.spawn(victim)
        disturbed.set()

    topic = f"{pipeline.name}.{schema}.ledger"
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(write())
        tasks.create_task(disturb(await changes(topic)))
    messages = await (await changes(topic)).until(writing.result())
    assert [int(row[0]) for message in messages for row in message["Rows"]] == list(range(writing.result()))


async def test_ddl_and_rows_of_other_tables_are_none_of_its_business(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    await execute(f"CREATE DATABASE {schema}_other")
    await execute(f"CREATE TABLE {schema}_other.t (id INT PRIMARY KEY)")
    await execute(f"INSERT INTO {schema}_other.t VALUES (1)")
    await execute(f"DROP DATABASE {schema}_other")
    await execute("INSERT INTO t VALUES (2)")
    (message,) = await (await changes(f"{pipeline.name}.{schema}.t")).until(1)
    assert message["Rows"] == [[b"2"]]


async def test_a_statement_that_hides_its_rows_stops_the_reader(
    pipeline: Pipeline, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    await execute("SET SESSION binlog_format = 'STATEMENT'")
    await execute("INSERT INTO t VALUES (1)")
    ended = asyncio.to_thread(until_ended, pipeline)
    assert await asyncio.wait_for(ended, 30)
    assert f"a statement may have changed {schema}.t" in pipeline.log("reader").read_text()
    assert "Traceback" not in pipeline.log("reader").read_text()


def until_ended(pipeline: Pipeline) -> bool:
    while pipeline.pid("reader"):
        pass
    return True

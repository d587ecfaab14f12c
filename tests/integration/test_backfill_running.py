"""Backfills of a pipeline that runs: paused, resumed, cancelled; tables that are altered or captured later; outputs."""

import asyncio
import json
import random
from typing import Any

import pytest

from common.connections import Execute
from common.pipelines import Consume, MakePipeline, run_until_idle
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from devstack import Server
from devstack.pipeline import Pipeline
from integration.loading import Copy, backfills, command, reached, rows_of

pytestmark = pytest.mark.mysql_in_slow

_ROWS = 32
#: chunks have 4 rows
_SLOW = {"rows_per_second": 16}


async def fill(execute: Execute, table: str, rows: int = _ROWS) -> None:
    await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9))")
    await execute(f"INSERT INTO {table} VALUES {', '.join(f'({number}, NULL)' for number in range(rows))}")


async def begin(pipeline: Pipeline) -> None:
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")


@pytest.fixture
async def running(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute) -> Pipeline:
    """A pipeline with a table t of 32 rows, which it reads slowly."""
    await fill(execute, "t")
    pipeline = make_pipeline(source, schema, backfill=_SLOW, publisher={"partition_by": "primary_key", "partitions": 3})
    await begin(pipeline)
    return pipeline


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_backfill_is_paused_resumed_and_cancelled(
    running: Pipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    copy = Copy(await changes(f"{running.name}.{schema}.t", partitions=3))
    waiting = asyncio.create_task(command(running, "start", f"{schema}.t", "--wait"))
    await reached(running, lambda progress: progress.rows >= 4)
    assert await command(running, "pause", f"{schema}.t") == 0
    paused = await reached(running, lambda progress: progress.state == "paused")
    await execute("UPDATE t SET v = 'paused' WHERE id IN (0, 31)")
    assert await command(running, "resume", f"{schema}.t") == 0
    resumed = await reached(running, lambda progress: progress.state == "running")
    assert 0 < paused.rows <= resumed.rows < _ROWS
    assert await waiting == 0
    await copy.equals(rows_of(source, f"{schema}.t"))
    assert len(copy.inserted) == len(set(copy.inserted)) == _ROWS

    waiting = asyncio.create_task(command(running, "start", f"{schema}.t", "--wait"))
    await reached(running, lambda progress: 4 <= progress.rows < _ROWS)
    assert await command(running, "cancel", f"{schema}.t") == 0
    assert await waiting == 1
    await execute("DELETE FROM t WHERE id = 5")
    await copy.equals(rows_of(source, f"{schema}.t"))
    assert [progress.state for _, progress in await backfills(running)] == ["done", "cancelled"]


async def test_a_writer_changes_rows_while_chunks_are_read(
    running: Pipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    """Also a column is added in the middle. Rows that a chunk had before are in the copy without it."""
    copy = Copy(await changes(f"{running.name}.{schema}.t", partitions=3))
    waiting = asyncio.create_task(command(running, "start", f"{schema}.t", "--wait"))
    seed = random.Random(3)
    for number in range(10_000):
        if waiting.done():
            break
        first, second = seed.sample(range(_ROWS + 8), 2)
        await execute(
            seed.choice(
                [
                    f"UPDATE t SET v = 'v{number}' WHERE id IN ({first}, {second})",
                    f"UPDATE IGNORE t SET id = {first} WHERE id = {second}",
                    f"DELETE FROM t WHERE id = {first}",
                    f"REPLACE INTO t (id, v) VALUES ({first}, 'w{number}')",
                ]
            )
        )
        if number == 60:
            await execute("ALTER TABLE t ADD COLUMN n INT")
    assert await waiting == 0
    await execute("UPDATE t SET n = id")
    await copy.equals(rows_of(source, f"{schema}.t"))


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_table_is_emptied_in_the_middle(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    """With one partition: between partitions, TRUNCATE and rows have no order."""
    await fill(execute, "t")
    pipeline = make_pipeline(source, schema, backfill=_SLOW)
    copy = Copy(await changes(f"{pipeline.name}.{schema}.t"))
    await begin(pipeline)
    waiting = asyncio.create_task(command(pipeline, "start", f"{schema}.t", "--wait"))
    await reached(pipeline, lambda progress: progress.rows >= 4)
    await execute("TRUNCATE TABLE t")
    await execute("INSERT INTO t VALUES (100, 'new')")
    assert await waiting == 0
    await copy.equals(rows_of(source, f"{schema}.t"))


@pytest.mark.parametrize(
    ("source", "statement"),
    [
        ("mariadb", "RENAME TABLE t TO old, u TO t, old TO u"),
        ("mysql", "ALTER TABLE t DROP PRIMARY KEY, DROP id, ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST"),
    ],
    indirect=["source"],
)
async def test_a_backfill_starts_over_if_keys_mean_other_rows(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume, statement: str
) -> None:
    await fill(execute, "t", 12)
    await fill(execute, "u", 2)
    pipeline = make_pipeline(source, schema, backfill=_SLOW)
    copy = Copy(await changes(f"{pipeline.name}.{schema}.t"))
    await begin(pipeline)
    waiting = asyncio.create_task(command(pipeline, "start", f"{schema}.t", "--wait"))
    await reached(pipeline, lambda progress: progress.rows >= 4)
    await execute(statement)
    assert await waiting == 0
    await copy.equals(rows_of(source, f"{schema}.t"))


@pytest.mark.parametrize(
    ("source", "statement", "why"),
    [
        ("mariadb", "DROP TABLE t", "dropped"),
        ("mysql", "RENAME TABLE t TO other", "renamed to {}.other, which"),
    ],
    indirect=["source"],
)
async def test_a_backfill_fails_if_its_table_goes(
    running: Pipeline, schema: str, execute: Execute, statement: str, why: str
) -> None:
    waiting = asyncio.create_task(command(running, "start", f"{schema}.t", "--wait"))
    await reached(running, lambda progress: progress.rows >= 4)
    await execute(statement)
    assert await waiting == 1
    _, progress = next(each for each in await backfills(running) if each[0].table == "t")
    assert progress.state == "failed"
    assert f"the table was {why.format(schema)}" in progress.error


async def test_a_table_without_key_is_loaded_exactly_once_if_it_is_small_or_any_size_is_accepted(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT, v VARCHAR(9))")
    await execute(f"INSERT INTO t VALUES {', '.join('(1, NULL), (2, NULL)' for _ in range(2000))}")
    await execute("ANALYZE TABLE t")
    pipeline = make_pipeline(source, schema, backfill={"keyless_limit": 1})
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    await begin(pipeline)
    assert await command(pipeline, "start", f"{schema}.t", "--wait") == 1
    waiting = asyncio.create_task(command(pipeline, "start", f"{schema}.t", "--any-size", "--wait"))
    inserted = 0
    while not waiting.done():
        await execute("INSERT INTO t VALUES (3, 'new')")
        inserted += 1
    assert await waiting == 0
    await execute("INSERT INTO t VALUES (4, 'last')")
    rows: list[list[Any]] = []
    while [b"4", b"last"] not in rows:
        for message in await consumer.until(1):
            rows = [] if message["Action"] == "truncate" else rows + message["Rows"]
    assert sorted(map(str, rows)) == sorted(str(list(row)) for row in await rows_of(source, f"{schema}.t")())
    assert [row for row in rows if row[0] == b"3"] == [[b"3", b"new"]] * inserted


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_table_without_key_that_takes_longer_than_a_transaction_may_is_not_loaded_again_and_again(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (v LONGTEXT)")
    await execute("INSERT INTO t SELECT REPEAT('v', 200000) FROM seq_1_to_20")
    await execute("CREATE TABLE u (id INT PRIMARY KEY)")
    pipeline = make_pipeline(source, schema, publisher={"transaction_timeout": "4s"})
    consumer = await changes(f"{pipeline.name}.{schema}.u")
    await begin(pipeline)
    a_row_a_second = "v IS NOT NULL AND SLEEP(1) = 0"
    assert await command(pipeline, "start", f"{schema}.t", "--where", a_row_a_second, "--wait") == 1
    [(_, progress)] = await backfills(pipeline)
    assert progress.state == "failed"
    assert "raise it and the brokers' transaction.max.timeout.ms, or add a primary key" in progress.error
    await execute("INSERT INTO u VALUES (1)")
    assert [each["Rows"] for each in await consumer.until(1)] == [[[b"1"]]]


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_t27_a_table_is_captured_later_and_loaded_again_and_another_is_not_disturbed(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    for table in ("a", "b"):
        await fill(execute, table, 3)
    pipeline = make_pipeline(source, schema, "a", reader={"start": "snapshot"}, backfill={"new_tables": True})
    a, b = [Copy(await changes(f"{pipeline.name}.{schema}.{table}")) for table in ("a", "b")]
    await run_until_idle(pipeline)
    config = json.loads(pipeline.config.read_text())
    config["source"]["include"] = [f"{schema}.a", f"{schema}.b"]
    pipeline.config.write_text(json.dumps(config))
    await run_until_idle(pipeline)
    await begin(pipeline)
    await execute("UPDATE a SET v = 'new' WHERE id = 1")
    assert await command(pipeline, "start", f"{schema}.b", "--clean", "--wait") == 0
    await execute("UPDATE b SET v = 'new' WHERE id = 1")
    for table, copy in ("a", a), ("b", b):
        await copy.equals(rows_of(source, f"{schema}.{table}"))
    assert [message["Action"] for message in a.messages] == ["insert", "update"]
    assert [message["Action"] for message in b.messages] == ["truncate", "insert"] * 2 + ["update"]
    states, _ = await read_states(load(pipeline.config))
    assert sorted((each.table, each.cause) for each in states.backfills.values()) == [
        ("a", "snapshot"), ("b", "new_table"), ("b", "request"),
    ]  # fmt: skip


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_rows_are_published_only_to_one_output(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await fill(execute, "t", 3)
    routes = [{"match": ["*.*"]}, {"match": ["*.*"], "output": "copy", "topic": "{name}.copy.{table}"}]
    pipeline = make_pipeline(source, schema, publisher={"routes": routes})
    default, copied = [Copy(await changes(f"{pipeline.name}.{name}")) for name in (f"{schema}.t", "copy.t")]
    await begin(pipeline)
    arguments = ("--topic-only", "copy", "--where", "id > 0", "--wait")
    assert await command(pipeline, "start", f"{schema}.t", *arguments) == 0
    await execute("INSERT INTO t VALUES (9, 'new')")
    for copy, missing in (default, (b"0", b"1", b"2")), (copied, (b"0",)):

        async def rows(missing: tuple[bytes, ...] = missing) -> list[tuple[bytes | None, ...]]:
            return [row for row in await rows_of(source, f"{schema}.t")() if row[0] not in missing]

        await copy.equals(rows)

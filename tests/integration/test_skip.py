"""`databus pipeline skip`: a pipeline that stops at one transaction continues behind it, and nothing is lost."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.connections import Execute, session_on
from common.pipelines import Consume, MakePipeline, run_until_idle
from common.waiting import eventually
from databus_binlog import Rows
from databus_cli.__main__ import main
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from devstack import Server
from devstack.pipeline import Pipeline
from integration.loading import Copy, rows_of

TABLES = "a", "b", "other"


async def stopped_at(pipeline: Pipeline) -> tuple[str, str]:
    """Wait until the reader has stopped. Return the transaction that its error names, and the position in it."""
    await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
    *_, last = pipeline.log("reader").read_text().splitlines()
    [transaction] = re.findall(r"run `databus pipeline skip --transaction (\S+)`", last)
    [position] = re.findall(r" at (\S+\.\d+:\d+) lack columns", last)
    return transaction, position


async def test_one_transaction_is_skipped_and_its_tables_are_healed(
    make_pipeline: MakePipeline,
    source: Server,
    schema: str,
    changes: Consume,
    execute: Execute,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for table in TABLES:
        await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9))")
    pipeline = make_pipeline(source, schema, doubt={"on_doubt": "stop"})
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    copies = {each: Copy(await changes(f"{pipeline.name}.{schema}.{each}")) for each in TABLES}

    async def command(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = await asyncio.to_thread(main, [*arguments, "--config", str(pipeline.config)])
        return code, *capfd.readouterr()

    async def all_published() -> None:
        for table, copy in copies.items():
            await copy.equals(rows_of(source, f"{schema}.{table}"))

    await execute("INSERT INTO b VALUES (1, 'before')")
    await all_published()
    doubt = (
        "SET SESSION binlog_row_image = MINIMAL",
        "START TRANSACTION",
        "INSERT INTO a VALUES (2, 'skipped')",
        "INSERT INTO b VALUES (2, 'skipped')",
        "UPDATE b SET v = 'changed' WHERE id = 1",
        "COMMIT",
        "SET SESSION binlog_row_image = FULL",
    )
    for statement in doubt:
        await execute(statement)
    await execute("INSERT INTO other VALUES (3, 'flows')")
    transaction, position = await stopped_at(pipeline)

    code, _, said = await command("pipeline", "skip", "--transaction", transaction, "--yes")
    assert code == 0, said
    assert f"has 1 row of {schema}.a, 2 rows of {schema}.b\n" in said
    _, shown, _ = await command("status", "--json")
    assert json.loads(shown)["skips"] == {"transactions": transaction}
    await asyncio.to_thread(pipeline.start_all, "reader")
    await all_published()
    await eventually(_healed(pipeline), seconds=30)
    assert [each["Action"] for each in copies["a"].messages] == ["truncate", "insert"]
    assert [each["Action"] for each in copies["b"].messages] == ["insert", "truncate", "insert"]
    assert [each["Action"] for each in copies["other"].messages] == ["insert"]
    _, letters, _ = await command("deadletter", "list", "--json")
    about = [json.loads(letter) for letter in letters.splitlines()]
    assert [(each["reason"], each["table"], each["action"], each["value"]) for each in about] == [
        ("skipped", "a", "insert", True), ("skipped", "b", "insert", True),
    ]  # fmt: skip

    _, shown, _ = await command("status", "--json")
    waiting = json.loads(shown)["dead_letters"]
    assert (waiting["count"], waiting["tables"]) == (2, f"{schema}.a (1), {schema}.b (1)")
    code, _, said = await command("deadletter", "replay")
    assert (code, said.splitlines()[-1]) == (0, "databus: replayed: 2, left: 0")

    later = re.sub(r"\d+$", "99999", transaction)
    for wrong, why in (
        (transaction, f"{transaction} was published already"),
        (position, f"{position} was published already"),
        (later, f"has no transaction {later} after the pipeline's position"),
    ):
        code, _, said = await command("pipeline", "skip", "--transaction", wrong, "--yes")
        assert code == 1
        assert said.splitlines()[-1].endswith(why)
    for statement in (*doubt[:1], "UPDATE b SET v = 'again' WHERE id = 1"):
        await execute(statement)
    again, position = await stopped_at(pipeline)
    assert again != transaction
    code, _, said = await command("pipeline", "skip", "--transaction", position)
    assert code == 2  # nobody can confirm it
    assert f"transaction {again} begins at " in said
    assert not (await read_states(load(pipeline.config)))[0].skips


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_an_account_that_sees_no_table_is_asked_for_select_and_not_to_skip_again(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume, execute: Execute
) -> None:
    """The statement reads a table, so it may have changed any table: which ones there are only SELECT shows."""
    await execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9))")
    await execute(f"CREATE USER {schema} IDENTIFIED BY '{source.password}'")
    await execute(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {schema}")
    pipeline = make_pipeline(source, schema, source={"user": schema}, doubt={"on_doubt": "stop"})
    copy = Copy(await changes(f"{pipeline.name}.{schema}.a"))
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    await execute("INSERT INTO a VALUES (1, 'before')")
    await execute("SET SESSION binlog_format = STATEMENT")
    await execute("UPDATE a SET v = (SELECT 'hidden')")

    async def stopped() -> str:
        await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
        return pipeline.log("reader").read_text().splitlines()[-1]

    [transaction] = re.findall(r"run `databus pipeline skip --transaction (\S+)`", await stopped())
    skip = ["pipeline", "skip", "--transaction", transaction, "--yes", "--config", str(pipeline.config)]
    assert await asyncio.to_thread(main, skip) == 0
    pipeline.spawn("reader")
    last = await stopped()
    assert f"user '{schema}' lacks SELECT on {schema}.*: grant it" in last
    assert "pipeline skip" not in last

    await execute(f"GRANT SELECT ON {schema}.* TO {schema}")
    await asyncio.to_thread(pipeline.start_all, "reader")
    await copy.equals(rows_of(source, f"{schema}.a"))
    await eventually(_healed(pipeline), seconds=30)
    await execute(f"DROP USER {schema}")


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_the_command_ends_no_connection_of_the_reader(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    """A server ends a replica's older connection. The reader's second one reads XA transactions again."""
    await execute("CREATE TABLE a (id INT PRIMARY KEY)")
    pipeline = make_pipeline(source, schema)
    await run_until_idle(pipeline)
    settings = load(pipeline.config)
    async with session_on(source) as session:
        start = await session.current_position()
        stream = await session.dump(
            start, server_id=settings.second_server_id, wanted=settings.source.captures, follow=True
        )
        await execute("INSERT INTO a VALUES (1)")
        skip = "pipeline", "skip", "--transaction", f"{start.file}:{start.offset}", "--yes"
        assert await asyncio.to_thread(main, [*skip, "--config", str(pipeline.config)]) == 0
        await execute("INSERT INTO a VALUES (2)")
        rows = 0
        async with asyncio.timeout(30):
            while rows < 2:
                rows += sum(isinstance(event, Rows) for event in await anext(stream))


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize("rows", [1, 3000], ids=["in the same chunk of events", "in an earlier chunk"])
async def test_what_precedes_the_transaction_is_published_before_the_reader_stops(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume, execute: Execute, rows: int
) -> None:
    for table in ("good", "bad"):
        await execute(f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(99))")
    pipeline = make_pipeline(source, schema, doubt={"on_doubt": "stop"})
    copy = Copy(await changes(f"{pipeline.name}.{schema}.good"))
    await run_until_idle(pipeline)
    await execute("INSERT INTO good VALUES (1, 'published')")
    for statement in (
        "START TRANSACTION",
        "INSERT INTO bad (v) VALUES " + ", ".join([f"('{'left out':_<99}')"] * rows),
        "SET SESSION binlog_row_image = MINIMAL",
        "UPDATE bad SET v = 'changed' WHERE id = 1",
        "COMMIT",
    ):
        await execute(statement)
    for service in ("publisher", "reader"):
        pipeline.spawn(service)
    await stopped_at(pipeline)
    await copy.equals(rows_of(source, f"{schema}.good"))


def _healed(pipeline: Pipeline) -> Callable[[], Awaitable[Any]]:
    async def healed() -> bool:
        states, _ = await read_states(load(pipeline.config))
        return not states.doubts and not states.skips and not states.unfinished()

    return healed

"""`databus pipeline skip`: a pipeline that stops at one transaction continues behind it, and nothing is lost."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.connections import Execute
from common.pipelines import Consume, MakePipeline, run_until_idle
from common.waiting import eventually
from databus.kafka_table_states import read_states
from databus.settings import load
from databus_cli.__main__ import main
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
    _, shown, _ = await command("pipeline", "show", "--json")
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

    code, _, said = await command("deadletter", "replay")
    assert (code, said.splitlines()[-1]) == (0, "databus: replayed: 2, left: 0")

    later = re.sub(r"\d+$", "99999", transaction)
    for wrong, why in (
        (transaction, f"{transaction} was published already"),
        (position, f"{position} was published already"),
        (later, f"has no transaction {later} behind the pipeline's position"),
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

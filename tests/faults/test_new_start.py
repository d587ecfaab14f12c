"""`doubt.all: heal`: if changes are lost, all tables are loaded again, and consumers end with their rows."""

import asyncio
from collections.abc import Iterator

import pytest

from common.connections import connected, session_on
from common.pipelines import Consume, MakePipeline, run_until_idle, upserted
from databus_cli.__main__ import main
from databus_core.kafka_progress import read_progress
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from devstack import Kind, Server, Stack

_RESET = {"mariadb": "RESET MASTER", "mysql": "RESET BINARY LOGS AND GTIDS"}


@pytest.fixture(params=["mariadb", "mysql"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of this module's own: its tests delete the binlogs of its databases."""
    stack = Stack(tmp_path_factory.mktemp("own"), own=True)
    yield stack
    stack.discard()


@pytest.fixture
def source(stack: Stack, kind: Kind) -> Server:
    return stack.start(kind)


async def logs_of(source: Server) -> list[str]:
    async with session_on(source) as session:
        return list(await session.logs())


async def lose_changes(source: Server, how: str) -> None:
    """Change rows and drop a table; then delete the binlogs with these changes."""
    async with connected(source) as execute:
        for statement in (
            "UPDATE shop.t SET v = 'changed' WHERE id = 1",
            "DELETE FROM shop.t WHERE id = 2",
            "INSERT INTO shop.t VALUES (3, 'c')",
            "DROP TABLE shop.gone",
        ):
            await execute(statement)
        if how == "reset":
            await execute(_RESET[source.kind])
        else:
            await execute("FLUSH BINARY LOGS")
            async with asyncio.timeout(20):
                while len(logs := await logs_of(source)) > 1:  # MariaDB keeps an old file for a moment
                    await execute(f"PURGE BINARY LOGS TO '{logs[-1]}'")


@pytest.mark.parametrize(("kind", "how"), [("mariadb", "purged"), ("mysql", "reset")], indirect=["kind"])
async def test_all_tables_are_loaded_again_where_changes_are_lost(
    make_pipeline: MakePipeline, source: Server, changes: Consume, how: str
) -> None:
    async with connected(source) as execute:
        await execute("CREATE DATABASE shop")
        for table in "t", "gone":
            await execute(f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, v VARCHAR(9))")
            await execute(f"INSERT INTO shop.{table} VALUES (1, 'a'), (2, 'b')")
    pipeline = make_pipeline(source, "shop", reader={"start": "snapshot"}, doubt={"all": "heal"})
    settings = load(pipeline.config)
    await run_until_idle(pipeline)
    before = await read_progress(settings)
    await lose_changes(source, how)
    await run_until_idle(pipeline, in_doubt="shop.gone")

    messages = await (await changes(f"{pipeline.name}.shop.t")).until(3)
    assert upserted(messages) == {b"1": b"changed", b"3": b"c"}
    assert [each["Action"] for each in messages].count("truncate") == 1
    states, _ = await read_states(settings)
    assert {name: doubt.state for name, doubt in states.doubts.items()} == {("shop", "gone"): "parked"}
    after = await read_progress(settings)
    assert before is not None
    assert after is not None
    assert after.transaction > before.transaction  # ordinals go on
    log = pipeline.log("reader").read_text()
    assert log.count("starting anew at the end of the binlog") == 1
    assert "shop.t is parked: " in log

    async with connected(source) as execute:  # the new start is not repeated
        await execute("INSERT INTO shop.t VALUES (4, 'd')")
    await run_until_idle(pipeline, in_doubt="shop.gone")
    messages += await (await changes(f"{pipeline.name}.shop.t")).until(len(messages) + 1)
    assert pipeline.log("reader").read_text().count("starting anew at the end of the binlog") == 1
    async with connected(source) as execute:
        await execute("DROP DATABASE shop")


@pytest.mark.parametrize("kind", ["mysql"], indirect=True)
async def test_by_default_the_reader_stops_and_names_the_command_that_continues(
    make_pipeline: MakePipeline, source: Server, changes: Consume
) -> None:
    async with connected(source) as execute:
        await execute("CREATE DATABASE shop")
        for table in "t", "gone":
            await execute(f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, v VARCHAR(9))")
            await execute(f"INSERT INTO shop.{table} VALUES (1, 'a'), (2, 'b')")
    pipeline = make_pipeline(source, "shop", reader={"start": "snapshot"})
    await run_until_idle(pipeline)
    await lose_changes(source, "purged")
    pipeline.start_all("publisher")
    pipeline.spawn("reader")
    await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
    assert "run `databus pipeline reset --to snapshot`" in pipeline.log("reader").read_text()
    await asyncio.to_thread(pipeline.stop, "publisher")
    command = ["pipeline", "reset", "--to", "snapshot", "--yes", "--config", str(pipeline.config)]
    assert await asyncio.to_thread(main, command) == 0
    await run_until_idle(pipeline)
    messages = await (await changes(f"{pipeline.name}.shop.t")).until(3)
    assert upserted(messages) == {b"1": b"changed", b"3": b"c"}
    async with connected(source) as execute:
        await execute("DROP DATABASE shop")

"""The binlog has lost the end of a transaction: the tables of this transaction are parked and healed, no others are."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from common.connections import Execute
from databus_binlog import Decoder, Xid, read_file
from devstack import Server, Stack
from devstack.replication import run
from integration.live_tables import Begin


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest, own: Stack) -> Server:
    return own.start(request.param)


@pytest.fixture
async def schema(source: Server) -> AsyncIterator[str]:
    """A schema that is dropped on a new connection, because the server was restarted."""
    await run(source, "CREATE DATABASE shop")
    yield "shop"
    await run(source, "DROP DATABASE shop")


@pytest.fixture
def execute(source: Server, schema: str) -> Execute:
    """Run each statement on a new connection."""

    async def run_one(statement: str) -> None:
        await run(source, f"USE {schema}", statement)

    return run_one


async def test_a_transaction_whose_end_was_lost_parks_its_tables_only_and_is_healed(
    begin: Begin, own: Stack, source: Server, execute: Execute
) -> None:
    live = await begin({"t": "", "u": "", "other": ""}, doubt={"heal": "manual"})
    await asyncio.to_thread(live.pipeline.stop, "reader")
    half = [f"INSERT INTO {table} VALUES (3, 'half')" for table in ("t", "u")]
    await run(source, "USE shop", "START TRANSACTION", *half, "COMMIT")
    await lose_end(own, source)
    for table in ("t", "u", "other"):
        await execute(f"INSERT INTO {table} VALUES (4, 'after')")
    live.pipeline.spawn("reader")
    await live.equals("other")
    assert await live.parked("t", "u") == {"t": "unfinished_transaction", "u": "unfinished_transaction"}
    assert live.rows["t"] == live.rows["u"] == {b"1": [b"1", b"a"], b"2": [b"2", b"b"]}

    assert await live.command("backfill", "start", "shop.t", "shop.u", "--clean", "--wait") == 0
    await execute("INSERT INTO t VALUES (5, 'healed')")
    await live.equals("t", "u", "other")
    await live.parked()
    assert sorted(live.truncated) == ["t", "u"]


async def lose_end(own: Stack, source: Server) -> None:
    """Restart the server without the end of the last transaction, which it undoes, as after a crash of the machine."""
    await asyncio.to_thread(own.stop, source.kind)
    data = own.home / source.kind / "data"
    log = data / (data / "binlog.index").read_text().split()[-1]
    with log.open("rb") as file:
        ends = [each.start for events in read_file(file.read, Decoder()) for each in events if isinstance(each, Xid)]
    os.truncate(log, ends[-1])
    await asyncio.to_thread(own.start, source.kind)
    undo = [f"DELETE FROM shop.{table} WHERE v = 'half'" for table in ("t", "u")]
    await run(source, "SET SESSION sql_log_bin = 0", *undo)

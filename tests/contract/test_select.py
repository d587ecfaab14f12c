"""Rows of a SELECT on each kind of server, and the session after it."""

import asyncio
from contextlib import aclosing

import msgspec
import pytest

from common.column_types import tables
from common.connections import Connect, Execute, printing
from common.waiting import eventually
from databus_binlog import Disconnected, ServerRefused, ServerUnavailable, Tls
from databus_binlog.row_batch import RowBatch
from databus_binlog.session import Session
from devstack import Server

Row = list[bytes | None]


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
async def session(login: Connect):
    async with login() as session:
        await session.query("SET sql_mode = '', time_zone = '+00:00'")
        yield session


async def rows(session: Session, sql: str, **options: int) -> list[Row]:
    return [cells async for batch in session.select(sql, **options) for cells in unpacked(batch)]


def unpacked(batch: RowBatch) -> list[Row]:
    found = msgspec.msgpack.decode(batch.rows, type=list[Row])
    assert batch.count == len(found)
    assert batch.size == sum(len(cell) for cells in found for cell in cells if cell is not None)
    return found


@pytest.fixture
async def thousand(schema: str, execute: Execute) -> str:
    """A table with 1000 rows of 1 KB; its name."""
    await execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(1000))")
    await execute("INSERT INTO t (text) VALUES " + ", ".join(["(REPEAT('x', 1000))"] * 1000))
    return f"{schema}.t"


async def test_every_type_is_read_as_by_another_client(session: Session, source: Server, schema: str) -> None:
    async with printing(source) as run:
        await run(f"USE {schema}")
        for table in tables(source.kind):
            for statement in (*table.creation, table.insert):
                await run(statement)
            sql = f"SELECT * FROM {schema}.{table.name}"
            assert await rows(session, sql) == await run(sql)


async def test_many_statements_follow_one_another_on_a_session(session: Session, thousand: str) -> None:
    for number in range(200):
        await session.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        assert await rows(session, f"SELECT id FROM {thousand} LIMIT {number}") == [
            [b"%d" % (one + 1)] for one in range(number)
        ]
        assert await session.query("SELECT 7") == [(7,)]
        await session.query("COMMIT")


@pytest.mark.parametrize("encrypted", [False, True])
async def test_rows_of_20_mb_and_many_columns_arrive_whole(login: Connect, trusted: Tls, encrypted: bool) -> None:
    columns = ", ".join(map(str, range(1000)))
    async with login(tls=trusted if encrypted else None) as session:
        [[first, last]] = await rows(session, "SELECT REPEAT('x', 20000000), 7")
        assert (len(first or b""), set(first or b""), last) == (20_000_000, {ord("x")}, b"7")
        assert await rows(session, f"SELECT {columns}") == [[b"%d" % number for number in range(1000)]]
        assert await rows(session, "SELECT 1 FROM dual WHERE FALSE") == []
        assert await session.query("SELECT 7") == [(7,)]


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_consumer_that_is_behind_keeps_the_server_waiting(
    login: Connect, trusted: Tls, admin: Session, thousand: str, encrypted: bool
) -> None:
    async with login(tls=trusted if encrypted else None) as session:
        [(connection,)] = await session.query("SELECT CONNECTION_ID()")
        many = f"SELECT a.text FROM {thousand} a, {thousand} b LIMIT 100000"
        async with aclosing(session.select(many)) as batches:
            found = (await anext(batches)).count
            await eventually(lambda: is_sending(admin, connection))
            received = found
            while batches_ready(session):
                received += (await anext(batches)).count
            assert received < 20_000
            received += sum([batch.count async for batch in batches])
        assert received == 100_000
        assert await session.query("SELECT 7") == [(7,)]


def batches_ready(session: Session) -> bool:
    return bool(session._stream._ready)


async def is_sending(admin: Session, connection: int) -> bool:
    """Return whether the server waits for a connection's client to read."""
    sql = f"SELECT state FROM information_schema.processlist WHERE id = {connection}"
    states = {str(state) for (state,) in await admin.query(sql)}
    return bool(states & {"Writing to net", "Sending to client"})


async def test_the_servers_error_ends_the_rows_and_leaves_the_session_usable(
    session: Session, admin: Session, thousand: str
) -> None:
    with pytest.raises(ServerRefused, match="1146"):
        await rows(session, "SELECT * FROM mysql.absent")
    [(connection,)] = await session.query("SELECT CONNECTION_ID()")
    with pytest.raises(ServerUnavailable, match="1317"):
        async with aclosing(session.select(f"SELECT a.text FROM {thousand} a, {thousand} b, {thousand} c")) as batches:
            await anext(batches)
            await admin.query(f"KILL QUERY {connection}")
            async for _ in batches:
                pass
    assert await rows(session, "SELECT 7") == [[b"7"]]
    assert await session.query("SELECT 7") == [(7,)]


async def test_a_killed_connection_ends_the_rows_with_an_error(login: Connect, admin: Session, thousand: str) -> None:
    async with login() as session:
        [(connection,)] = await session.query("SELECT CONNECTION_ID()")
        with pytest.raises((Disconnected, ServerUnavailable)):
            async with aclosing(session.select(f"SELECT a.text FROM {thousand} a, {thousand} b")) as batches:
                await anext(batches)
                await admin.query(f"KILL {connection}")
                async for _ in batches:
                    pass
        with pytest.raises((Disconnected, ServerUnavailable)):
            await rows(session, "SELECT 1")
        with pytest.raises((Disconnected, ServerUnavailable)):
            await session.query("SELECT 1")


async def test_a_server_that_is_silent_is_given_up(login: Connect) -> None:
    async with login(query_timeout=0.5) as session:
        with pytest.raises(Disconnected, match=r"sent nothing for 0\.5 s"):
            await rows(session, "SELECT SLEEP(60)")


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_cancelled_select_disconnects(login: Connect, trusted: Tls, encrypted: bool) -> None:
    async with login(tls=trusted if encrypted else None) as session:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await rows(session, "SELECT SLEEP(60)")
        with pytest.raises((Disconnected, ServerUnavailable)):
            await session.query("SELECT 7")


async def test_a_session_runs_no_other_statement_while_rows_arrive(session: Session, thousand: str) -> None:
    async with aclosing(session.select(f"SELECT * FROM {thousand}")) as batches:
        await anext(batches)
        with pytest.raises(Disconnected, match="open another session"):
            await session.query("SELECT 7")
        with pytest.raises(Disconnected, match="open another session"):
            await rows(session, "SELECT 7")
        assert sum([batch.count async for batch in batches]) > 900
    assert await session.query("SELECT 7") == [(7,)]

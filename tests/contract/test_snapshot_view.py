"""Short read views, one after another on one session: their rows, and DDL behind them."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from common.connections import Execute, connected, session_on
from common.gtids import last_number
from common.waiting import eventually
from databus_binlog import Position
from databus_binlog.errors import TableChanged
from databus_binlog.session import Session
from databus_changes.catalog import read_table
from databus_changes.snapshot.connection import connect_snapshot
from databus_changes.snapshot.locks import block_commits, lock_writes, unlock_writes
from databus_changes.snapshot.select import select
from databus_changes.snapshot.view import start_current_view, start_view
from databus_changes.snapshot.views import open_views
from databus_core.errors import SchemaMismatch
from databus_core.events import Table
from databus_core.settings import Source
from devstack import Server


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
def settings(own: Server) -> Source:
    return Source.model_validate({"hosts": [f"{own.host}:{own.port}"], "user": own.user, "password": own.password})


@pytest.fixture
async def session(settings: Source, schema: str) -> AsyncIterator[Session]:  # ends before the schema is dropped
    async with connect_snapshot(settings, settings.hosts[0]) as session:
        yield session


@pytest.fixture
async def table(session: Session, schema: str, execute: Execute) -> Table:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    table = await read_table(session, schema, "t")
    assert table
    return table


async def count(session: Session, table: Table) -> int:
    query = select(table)
    return sum([batch.count async for batch in session.select(query.sql, query.conversions)])


async def test_a_view_contains_the_transactions_before_its_end(
    session: Session, table: Table, execute: Execute
) -> None:
    before = last_number(await session.current_position())
    written = 0

    async def write() -> None:
        nonlocal written
        while True:
            await execute(f"INSERT INTO t VALUES ({written})")
            written += 1

    writer = asyncio.create_task(write())
    for _ in range(100):
        end = await session.current_position()
        await start_view(session, end)
        assert last_number(end) - before <= await count(session, table) <= written + 1
    writer.cancel()
    await asyncio.wait([writer])
    assert writer.cancelled()
    assert written > 10


async def test_a_current_view_contains_everything_that_was_committed_before(
    session: Session, table: Table, execute: Execute
) -> None:
    for number in range(50):
        await execute(f"INSERT INTO t VALUES ({number})")
        await start_current_view(session)
        assert await count(session, table) == number + 1


@asynccontextmanager
async def xa_transactions(server: Server, schema: str) -> AsyncIterator[None]:
    """Prepare a transaction, and meanwhile insert rows by others. Each has two GTIDs, of XA PREPARE and XA COMMIT."""
    is_over = asyncio.Event()

    async def write(execute: Execute) -> None:
        for number in itertools.count():
            if is_over.is_set():
                return
            await prepare(execute, f"{schema}{number}", f"INSERT INTO {schema}.t VALUES ({number})")
            await execute(f"XA COMMIT '{schema}{number}'")

    async with connected(server) as waiting, connected(server) as execute:
        await prepare(waiting, schema, f"INSERT INTO {schema}.t VALUES (-1)")
        writer = asyncio.create_task(write(execute))
        try:
            yield
        finally:
            is_over.set()
            await writer
            await waiting(f"XA ROLLBACK '{schema}'")


async def prepare(execute: Execute, xid: str, statement: str) -> None:
    for each in (f"XA START '{xid}'", statement, f"XA END '{xid}'", f"XA PREPARE '{xid}'"):
        await execute(each)


async def position_behind(session: Session, known: Position) -> Position | None:
    """Return the current position if an XA transaction, which has two GTIDs, was committed since another one."""
    position = await session.current_position()
    return position if last_number(position) >= last_number(known) + 2 else None


async def test_views_contain_the_xa_transactions_that_were_committed_before(
    session: Session, table: Table, source: Server, schema: str
) -> None:
    # A view that lacks one is rare in so few attempts; what is checked here is that the server does all that is asked.
    before = last_number(await session.current_position()) + 1
    async with xa_transactions(source, schema):
        position = await session.current_position()
        for _ in range(11):
            end = await eventually(partial(position_behind, session, position))
            await start_view(session, end)
            assert await count(session, table) >= (last_number(end) - before) // 2
            position = await start_current_view(session)
            assert await count(session, table) == (last_number(position) - before) // 2
    assert last_number(position) > before + 20


async def test_ddl_behind_a_view_is_an_error_and_the_next_view_has_the_table(
    session: Session, settings: Source, table: Table, execute: Execute
) -> None:
    await execute("INSERT INTO t VALUES (1)")
    await start_view(session, await session.current_position())
    await execute("ALTER TABLE t ENGINE=InnoDB, FORCE")
    with pytest.raises(TableChanged):
        await count(session, table)
    await start_view(session, await session.current_position())
    assert await count(session, table) == 1
    await session.query("COMMIT")
    with pytest.raises(SchemaMismatch, match="changed by DDL"):
        async with open_views(settings, settings.hosts[0]) as [view]:
            await execute("ALTER TABLE t ENGINE=InnoDB, FORCE")
            async for _ in view.batches(select(table)):
                pass


async def test_a_lock_does_not_outlive_a_session_that_falls_silent(
    session: Session, table: Table, execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    if session.server.flavor == "mariadb":
        pytest.skip("MariaDB takes no lock")
    is_locked = asyncio.Event()

    async def fall_silent(_: Session) -> Position:
        is_locked.set()
        return await asyncio.Future()

    monkeypatch.setattr(Session, "current_position", fall_silent)
    opening = asyncio.create_task(start_current_view(session))
    await is_locked.wait()
    async with asyncio.timeout(30):
        await execute("INSERT INTO t VALUES (1)")
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)


async def test_the_lock_is_taken_although_a_writer_that_it_blocks_has_a_row_for_which_another_one_waits(
    session: Session, table: Table, source: Server, schema: str, execute: Execute
) -> None:
    async def is_running(statement: str) -> bool:
        async with session_on(source) as observer:
            running = f"SELECT 1 FROM information_schema.processlist WHERE db = '{schema}' AND info = %s"
            return bool(await observer.query(running, (statement,)))

    lock, update = "FLUSH TABLES WITH READ LOCK", "UPDATE t SET id = 4 WHERE id = 1"
    await execute("INSERT INTO t VALUES (1), (2)")
    async with connected(source) as first, connected(source) as second, asyncio.TaskGroup() as tasks:
        for writer in (first, second):
            await writer(f"USE {schema}")
        await first("BEGIN")
        await first("UPDATE t SET id = 3 WHERE id = 1")
        tasks.create_task(second(update))
        await eventually(partial(is_running, update))
        await session.query(f"USE {schema}")
        locking = tasks.create_task(lock_writes(session))
        await eventually(partial(is_running, lock))
        await first("UPDATE t SET id = 5 WHERE id = 2")
        await first("COMMIT")
        await locking
        await unlock_writes(session)
    assert await count(session, table) == 2


async def test_commits_are_blocked_although_a_statement_takes_longer_than_the_first_attempt(
    session: Session, source: Server, schema: str, execute: Execute
) -> None:
    if session.server.flavor == "mysql":
        pytest.skip("MySQL has no backup stages")
    await execute("CREATE TABLE aside (got INT) ENGINE=MyISAM")
    insert = f"INSERT INTO {schema}.aside VALUES (GET_LOCK('{schema}', 60))"

    async def waits() -> bool:
        async with session_on(source) as observer:
            running = "SELECT 1 FROM information_schema.processlist WHERE info = %s AND state = 'User lock'"
            return bool(await observer.query(running, (insert,)))

    async with connected(source) as first, connected(source) as second, asyncio.TaskGroup() as tasks:
        await first(f"DO GET_LOCK('{schema}', 0)")
        tasks.create_task(second(insert))
        await eventually(waits)
        blocking = tasks.create_task(block_commits(session))
        await asyncio.wait({blocking}, timeout=1.5)
        assert not blocking.done()
        await first(f"DO RELEASE_LOCK('{schema}')")
        await blocking
        await session.query("BACKUP STAGE END")

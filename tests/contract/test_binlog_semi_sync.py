"""Acknowledgements of a reader to a semi-synchronous server, on each kind of server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from common.binlog_rows import ids, until
from common.connections import Execute
from common.waiting import eventually
from databus_binlog.session import Session
from devstack import Server


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
async def execute(execute: Execute) -> Execute:
    """Run statements in the test's schema, which has a table `t`."""
    await execute("CREATE TABLE t (id INT PRIMARY KEY, big LONGBLOB)")
    return execute


@pytest.fixture
async def semi_sync(own: Server, admin: Session) -> AsyncIterator[str]:
    """Commits wait a minute for an acknowledgement. Yields the first words of the variables' names."""
    name = "rpl_semi_sync_master" if own.kind == "mariadb" else "rpl_semi_sync_source"
    if own.kind == "mysql":
        await admin.query("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    await admin.query(f"SET GLOBAL {name}_timeout = 60000, GLOBAL {name}_enabled = ON")
    yield name
    await admin.query(f"SET GLOBAL {name}_enabled = OFF")
    if own.kind == "mysql":

        async def is_alone() -> bool:
            return (await status(admin, name))[1] == 0

        await eventually(is_alone, seconds=30)  # with the next heartbeat it notices that the reader has disconnected
        await admin.query("UNINSTALL PLUGIN rpl_semi_sync_source")


async def status(admin: Session, name: str) -> tuple[str, int, int, int]:
    """Return whether commits wait, for how many clients, and how many were acknowledged in time and too late."""
    values = dict(await admin.query(f"SHOW GLOBAL STATUS LIKE '{name}%'"))
    state, *numbers = (values[f"{name.capitalize()}_{key}"] for key in ("status", "clients", "yes_tx", "no_tx"))
    return state, *map(int, numbers)


@pytest.mark.parametrize("encrypted", [False, True])
async def test_commits_wait_for_a_semi_synchronous_reader(login, admin, schema, execute, trusted, semi_sync, encrypted):
    start = await admin.current_position()
    async with login(tls=trusted if encrypted else None) as session:
        stream = await session.dump(
            start, server_id=4818, heartbeat=0.1, wanted=lambda name, _: name == schema, semi_sync=True
        )
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(until(stream, b"7"))
            await execute("INSERT INTO t (id) VALUES (1)")  # the server begins to wait with the first acknowledgement

            async def waits() -> bool:
                return (await status(admin, semi_sync))[0] == "ON"

            await eventually(waits)
            _, _, acknowledged, missed = await status(admin, semi_sync)
            for number in range(2, 7):
                await execute("INSERT INTO t VALUES (%s, REPEAT('x', 100000))", number)
            await execute("INSERT INTO t VALUES (7, REPEAT('x', 17000000))")
            assert await status(admin, semi_sync) == ("ON", 1, acknowledged + 6, missed)
    assert ids(reading.result()) == [b"%d" % number for number in range(1, 8)]


async def test_semi_sync_is_not_used_if_the_server_has_it_disabled(login, admin, schema, execute):
    start = await admin.current_position()
    await execute("INSERT INTO t (id) VALUES (1)")
    async with login() as session:
        stream = await session.dump(start, server_id=4819, wanted=lambda name, _: name == schema, semi_sync=True)
        assert ids(await until(stream, b"1")) == [b"1"]

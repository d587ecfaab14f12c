"""A semi-synchronous dump acknowledges commits, on each kind of server."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

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
    """Let commits wait up to a minute for an acknowledgement; yield the prefix of the server's variables for this."""
    name = "rpl_semi_sync_master" if own.kind == "mariadb" else "rpl_semi_sync_source"
    if own.kind == "mysql":
        await admin.query("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
    await admin.query(f"SET GLOBAL {name}_timeout = 60000, GLOBAL {name}_enabled = ON")
    yield name
    await admin.query(f"SET GLOBAL {name}_enabled = OFF")
    if own.kind == "mysql":

        async def has_no_client() -> bool:
            return (await status(admin, name)).clients == 0

        await eventually(has_no_client, seconds=30)  # the server notices a disconnection at its next heartbeat
        await admin.query("UNINSTALL PLUGIN rpl_semi_sync_source")


class Status(NamedTuple):
    """The server's status variables for semi-synchronous replication."""

    status: str  #: ON while commits wait for acknowledgements
    clients: int  #: connected semi-synchronous replicas
    yes_tx: int  #: commits that were acknowledged in time
    no_tx: int  #: commits that were not


async def status(admin: Session, name: str) -> Status:
    values = dict(await admin.query(f"SHOW GLOBAL STATUS LIKE '{name}%'"))
    state, *numbers = (values[f"{name.capitalize()}_{field}"] for field in Status._fields)
    return Status(state, *map(int, numbers))


@pytest.mark.parametrize("encrypted", [False, True])
async def test_every_commit_is_acknowledged_in_time(login, admin, schema, execute, trusted, semi_sync, encrypted):
    start = await admin.current_position()
    async with login(tls=trusted if encrypted else None) as session:
        stream = await session.dump(
            start, server_id=4818, heartbeat=0.1, wanted=lambda name, _: name == schema, semi_sync=True
        )
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(until(stream, b"7"))
            await execute("INSERT INTO t (id) VALUES (1)")  # commits wait only after the first acknowledgement

            async def is_on() -> bool:
                return (await status(admin, semi_sync)).status == "ON"

            await eventually(is_on)
            before = await status(admin, semi_sync)
            for number in range(2, 7):
                await execute("INSERT INTO t VALUES (%s, REPEAT('x', 100000))", number)
            await execute("INSERT INTO t VALUES (7, REPEAT('x', 17000000))")
            assert await status(admin, semi_sync) == Status("ON", 1, before.yes_tx + 6, before.no_tx)
    assert ids(reading.result()) == [b"%d" % number for number in range(1, 8)]


async def test_a_server_with_semi_sync_disabled_sends_a_normal_dump(login, admin, schema, execute):
    start = await admin.current_position()
    await execute("INSERT INTO t (id) VALUES (1)")
    async with login() as session:
        stream = await session.dump(start, server_id=4819, wanted=lambda name, _: name == schema, semi_sync=True)
        assert ids(await until(stream, b"1")) == [b"1"]

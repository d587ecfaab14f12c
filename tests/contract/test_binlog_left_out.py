"""Transactions that the server leaves out, because the start's GTID set has them."""

import pytest

from common.connections import Execute, session_on
from databus_binlog import events as binlog
from devstack import Server


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_mysql_sends_a_heartbeat_behind_them_although_more_follows(source: Server, execute: Execute) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    for number in range(20):
        await execute("INSERT INTO t VALUES (%s)", number)
    async with session_on(source) as session:
        start = await session.current_position()
        await execute("INSERT INTO t VALUES (100)")
        # A start by GTIDs begins at the file's beginning.
        stream = await session.dump(start, server_id=987, follow=False)
        found = [event async for chunk in stream for event in chunk]
    kinds = [type(event) for event in found]
    assert binlog.Heartbeat in kinds
    assert binlog.Xid in kinds[kinds.index(binlog.Heartbeat) :]

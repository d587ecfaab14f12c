"""The replication protocol with each kind of server: checksums, GTID sets, registration, packets of any size."""

from collections.abc import AsyncIterator

import pytest

from common.binlog_rows import ids, until
from common.connections import Execute, connected
from databus_binlog import (
    DuplicateServerId,
    FormatDescription,
    Gtid,
    GtidSet,
    Position,
    Rows,
)
from devstack import Server


@pytest.fixture
async def execute(own: Server) -> AsyncIterator[Execute]:
    """Run statements in a new schema, which has only an empty table `t`."""
    async with connected(own) as run:
        await run("CREATE DATABASE protocol")
        await run("USE protocol")
        await run("CREATE TABLE t (id INT PRIMARY KEY, big LONGBLOB)")
        yield run
        await run("DROP DATABASE protocol")


def wanted(schema: str, _: str) -> bool:
    return schema == "protocol"


async def test_checksums_may_be_turned_off_and_on_while_the_log_is_read(login, admin, execute):
    start = await admin.current_position()
    async with login() as session:
        stream = await session.dump(start, server_id=4811, wanted=wanted)
        await execute("INSERT INTO t (id) VALUES (1)")
        seen = await until(stream, b"1")
        for number, checksum in enumerate(("NONE", "CRC32"), 2):
            await execute(f"SET GLOBAL binlog_checksum = {checksum}")
            await execute(f"INSERT INTO t (id) VALUES ({number})")
            seen += await until(stream, b"%d" % number)
            async with login() as other:
                assert ids(await until(await other.dump(start, server_id=4812, wanted=wanted), b"%d" % number))
    assert ids(seen) == [b"1", b"2", b"3"]
    assert len([event for event in seen if isinstance(event, FormatDescription)]) == 3


async def test_a_dump_that_starts_without_checksums_continues_when_they_are_turned_on(login, admin, execute):
    await execute("SET GLOBAL binlog_checksum = NONE")
    try:
        async with login() as session:
            stream = await session.dump(await admin.current_position(), server_id=4813, wanted=wanted)
            await execute("INSERT INTO t (id) VALUES (1)")
            assert ids(await until(stream, b"1")) == [b"1"]
            await execute("SET GLOBAL binlog_checksum = CRC32")
            await execute("INSERT INTO t (id) VALUES (2)")
            assert ids(await until(stream, b"2")) == [b"2"]
    finally:
        await execute("SET GLOBAL binlog_checksum = CRC32")


@pytest.mark.parametrize("own", ["mysql"], indirect=True)  # MariaDB's GTIDs have no tags
async def test_reading_can_resume_after_each_tagged_transaction(login, admin, execute):
    start = await admin.current_position()
    for number, tag in enumerate(("", ":shop", ":shop", ":stock", ""), 1):
        await execute(f"SET gtid_next = 'AUTOMATIC{tag}'")
        await execute(f"INSERT INTO t (id) VALUES ({number})")
    async with login() as session:
        stream = await session.dump(start, server_id=4814, follow=False, wanted=wanted)
        events = [event async for events in stream for event in events]
    gtids = [event.gtid for event in events if isinstance(event, Gtid)]
    assert [gtid.split(":")[1:-1] for gtid in gtids] == [[], ["shop"], ["shop"], ["stock"], []]

    executed = GtidSet.parse("mysql", start.gtid_set)
    for last, gtid in enumerate(gtids, 1):
        executed.add(gtid)
        async with login() as session:
            here = Position(gtid_set=str(executed))
            stream = await session.dump(here, server_id=4815, follow=False, wanted=wanted)
            rest = [event async for events in stream for event in events]
        assert ids(rest) == [b"%d" % number for number in range(last + 1, 6)]
    end = await admin.current_position()
    assert GtidSet.parse("mysql", end.gtid_set) == executed


async def test_a_registered_replica_is_listed_and_its_dump_ends_when_another_uses_its_server_id(own, login, admin):
    start = await admin.current_position()
    async with login() as first, login() as second:
        await first.register(4816)
        replicas = await admin.query("SHOW SLAVE HOSTS" if own.kind == "mariadb" else "SHOW REPLICAS")
        assert [row[:2] for row in replicas if row[0] == 4816] == [(4816, "databus")]
        stream = await first.dump(start, server_id=4816, heartbeat=0.1)
        await anext(stream)
        await anext(await second.dump(start, server_id=4816, heartbeat=0.1))
        with pytest.raises(DuplicateServerId):
            async for _ in stream:
                pass


@pytest.mark.parametrize("encrypted", [False, True])
async def test_an_event_of_several_packets_is_complete(login, admin, execute, trusted, encrypted):
    size = (20 << 20) + 7
    start = await admin.current_position()
    await execute("INSERT INTO t VALUES (1, REPEAT('abcdefg', %s))", size // 7)
    await execute("INSERT INTO t VALUES (2, 'small')")
    async with login(tls=trusted if encrypted else None) as session:
        stream = await session.dump(start, server_id=4817, follow=False, wanted=wanted)
        rows = [event async for events in stream for event in events if isinstance(event, Rows)]
    (_, big), small = (event.images()[0] for event in rows)
    assert big == b"abcdefg" * (size // 7)
    assert small == [b"2", b"small"]

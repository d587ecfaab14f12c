"""A session on each kind of server: positions, dumps from them, and errors."""

import asyncio
import secrets

import pytest

from common.binlog_rows import ids
from common.connections import RESET
from common.waiting import eventually
from databus_binlog import (
    AccessDenied,
    Disconnected,
    Event,
    Gtid,
    GtidSet,
    Heartbeat,
    InvalidPosition,
    MissingPrivilege,
    Position,
    PositionPurged,
    PositionUnknown,
    Query,
    ServerUnavailable,
    Xid,
)
from databus_binlog.session import Session
from devstack import Server


@pytest.fixture
def source(own: Server) -> Server:
    return own


async def events_from(session: Session, position: Position, schema: str) -> list[Event]:
    """Read from a position to the end of the log, with the rows of one schema."""
    stream = await session.dump(position, server_id=4712, follow=False, wanted=lambda name, _: name == schema)
    return [event async for events in stream for event in events]


async def test_a_session_has_the_servers_properties(source, queries):
    assert queries.server.flavor == source.kind
    assert queries.server.gtid
    assert queries.server.server_id > 0
    assert queries.server.uuid
    assert queries.server.variables["binlog_format"] == "ROW"
    assert {"utf8mb4", "latin1", "binary"} <= set((await queries.collations()).values())


@pytest.mark.parametrize("way", ["gtid", "file"])
async def test_reading_can_resume_after_each_transaction(login, schema, execute, queries, way):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await queries.current_position()
    for number in range(4):
        await execute(f"INSERT INTO t VALUES ({number})")
    async with login() as session:
        events = await events_from(session, start, schema)
    assert ids(events) == [b"0", b"1", b"2", b"3"]
    last = max(event.end for event in events if isinstance(event, Xid))

    executed, gtid = GtidSet.parse(queries.server.flavor, start.gtid_set), ""
    for event in events:
        if isinstance(event, Gtid):
            gtid = event.gtid
        if isinstance(event, Xid):
            executed.add(gtid)
            here = Position(gtid_set=str(executed)) if way == "gtid" else Position(file=event.file, offset=event.end)
            async with login() as session:
                rest = ids(await events_from(session, here, schema))
            assert rest == ids([later for later in events if later.start >= event.end])
    assert all(event.gtid in executed for event in events if isinstance(event, Gtid) and event.end <= last)


async def test_the_log_can_be_read_from_its_start(own, login, schema, execute, queries):
    await execute(RESET[own.kind])
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (7)")
    earliest = await queries.earliest_position()
    assert earliest.offset == 4
    for start in (earliest, Position()):
        async with login() as session:
            events = await events_from(session, start, schema)
        assert ids(events) == [b"7"]
        assert any(isinstance(e, Query) and e.query == b"CREATE TABLE t (id INT PRIMARY KEY)" for e in events)


async def test_a_follower_gets_changes_as_they_happen_and_heartbeats_between(login, schema, execute, queries):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with login() as session:
        await session.register(4713)
        stream = await session.dump(
            await queries.current_position(), server_id=4713, heartbeat=0.1, wanted=lambda name, _: name == schema
        )
        seen: list[Event] = []
        inserted = False
        async with asyncio.timeout(20):
            async for events in stream:
                seen += events
                if isinstance(seen[-1], Heartbeat) and not inserted:
                    await execute("INSERT INTO t VALUES (1)")
                    inserted = True
                if ids(seen) and isinstance(seen[-1], Heartbeat):
                    break
        assert ids(seen) == [b"1"]
        commit = [event for event in seen if isinstance(event, Xid)][-1]
        assert (seen[-1].file, seen[-1].end) >= (commit.file, commit.end)
        with pytest.raises(Disconnected, match="streams the log"):
            await session.query("SELECT 1")


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_slow_consumer_pauses_reading_from_the_socket_and_loses_nothing(
    login, schema, execute, queries, trusted, encrypted
):
    await execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, filling VARBINARY(1000))")
    start = await queries.current_position()
    for _ in range(4):
        await execute("INSERT INTO t (filling) VALUES " + ",".join(["(REPEAT('x', 1000))"] * 2000))
    async with login(tls=trusted if encrypted else None) as session:
        transport = session._connection._transport
        assert bool(transport.get_extra_info("cipher")) is encrypted
        stream = await session.dump(
            start, server_id=4714, follow=False, backlog=100_000, wanted=lambda name, _: name == schema
        )
        first = await anext(stream)

        async def is_paused() -> bool:
            return not transport.is_reading()

        await eventually(is_paused, seconds=20)
        assert stream._unread < 100_000 + (1 << 20)
        events = [*first, *[event async for events in stream for event in events]]
    read = ids(events)
    assert len(read) == len(set(read)) == 8000


async def test_a_refused_login_and_an_unreachable_server_have_different_errors(login, unused_tcp_port):
    with pytest.raises(AccessDenied, match="'databus_nobody'; check user and password"):
        async with login(user="databus_nobody", password="wrong"):
            pass
    with pytest.raises(ServerUnavailable, match="server unavailable"):
        async with login(port=unused_tcp_port):
            pass


async def test_the_error_of_a_missing_privilege_names_the_grant(login, execute, queries):
    user, password = f"u_{secrets.token_hex(4)}", secrets.token_hex(8)
    await execute(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'")
    try:
        async with login(user=user, password=password) as session:
            with pytest.raises(MissingPrivilege, match="GRANT REPLICATION SLAVE"):
                await session.register(4715)
        async with login(user=user, password=password) as session:
            stream = await session.dump(await queries.current_position(), server_id=4715)
            with pytest.raises(MissingPrivilege, match="GRANT REPLICATION SLAVE"):
                await anext(stream)
        async with login(user=user, password=password) as session:
            with pytest.raises(MissingPrivilege, match="GRANT REPLICATION CLIENT"):
                await session.current_position()
    finally:
        await execute(f"DROP USER '{user}'@'%'")


async def test_each_kind_of_unusable_position_has_its_own_error(login, schema, queries):
    end = await queries.current_position()
    with pytest.raises(PositionPurged):
        async with login() as session:
            await events_from(session, Position(file="no-such-log.000001", offset=4), schema)
    with pytest.raises(InvalidPosition):
        async with login() as session:
            await events_from(session, Position(file=end.file, offset=end.offset + 100_000_000), schema)
    with pytest.raises(InvalidPosition, match="beyond 4 GiB"):
        async with login() as session:
            await events_from(session, Position(file=end.file, offset=1 << 33), schema)
    if queries.server.flavor == "mariadb":  # MySQL sends all transactions that are not in the set
        with pytest.raises(PositionUnknown):
            async with login() as session:
                await events_from(session, Position(gtid_set="0-4242-999999999"), schema)


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_killed_dump_raises_a_retryable_error(login, execute, queries, trusted, encrypted):
    async with login(tls=trusted if encrypted else None) as session:
        [(connection,)] = await session.query("SELECT CONNECTION_ID()")
        stream = await session.dump(await queries.current_position(), server_id=4716, heartbeat=0.1)
        await anext(stream)
        await execute(f"KILL {connection}")
        with pytest.raises((Disconnected, ServerUnavailable)):
            async for _ in stream:
                pass

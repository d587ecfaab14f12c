"""`locate` finds, for an offset in a server's log, the GTID set with which reading can continue on another server."""

import pytest

from databus_binlog import Gtid, GtidSet, InvalidPosition, Login, Position, Query, Xid
from databus_binlog.locate import locate, next_gtid
from databus_binlog.session import Session
from devstack import Server

#: a server id that no other test uses
SERVER_ID = 4720


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
def account(own: Server) -> Login:
    return Login(host=own.host, port=own.port, user=own.user, password=own.password)


async def test_an_offset_between_transactions_has_the_gtid_set_executed_before_it(
    account, login, schema, execute, queries
):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("FLUSH BINARY LOGS")
    start = await queries.current_position()
    for number in range(3):
        await execute(f"INSERT INTO t VALUES ({number})")
    end = await queries.current_position()
    async with login() as session:
        stream = await session.dump(start, server_id=4719, follow=False, wanted=lambda *_: False)
        events = [event async for events in stream for event in events]
    executed = GtidSet.parse(queries.server.flavor, start.gtid_set)
    for event in events:
        if isinstance(event, Gtid):
            at, gtid = event.start, event.gtid
            assert await locate(account, start.file, at, server_id=SERVER_ID) == Position(str(executed), start.file, at)
            assert await next_gtid(account, start.file, at, server_id=SERVER_ID) == gtid
            executed.add(gtid)
        elif isinstance(event, Xid | Query):
            with pytest.raises(InvalidPosition, match=f"{start.file}:{event.start} is inside a transaction"):
                await locate(account, start.file, event.start, server_id=SERVER_ID)
    assert await locate(account, end.file, end.offset, server_id=SERVER_ID) == end
    assert await next_gtid(account, end.file, end.offset, server_id=SERVER_ID) is None
    first = await locate(account, start.file, 4, server_id=SERVER_ID)
    assert str(GtidSet.parse(queries.server.flavor, start.gtid_set)) == first.gtid_set


async def test_an_offset_at_which_no_event_starts_is_an_error(account, schema, execute, queries: Session):
    end = await queries.current_position()
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with pytest.raises(InvalidPosition, match=r"the server has no file no\.000001 \(its log is "):
        await locate(account, "no.000001", 4, server_id=SERVER_ID)
    with pytest.raises(InvalidPosition, match=f"{end.file} ends at .*, before 99999999"):
        await locate(account, end.file, 99999999, server_id=SERVER_ID)
    with pytest.raises(InvalidPosition, match=f"no event starts at {end.file}:"):
        await locate(account, end.file, end.offset + 1, server_id=SERVER_ID)


@pytest.mark.parametrize("own", ["mysql"], indirect=True)
async def test_the_gtid_set_includes_transactions_that_were_restored_from_a_backup(account, schema, execute, queries):
    restored = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-10"
    await execute(f"SET GLOBAL gtid_purged = '+{restored}'")
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    end = await queries.current_position()
    assert restored in end.gtid_set
    assert await locate(account, end.file, end.offset, server_id=SERVER_ID) == end

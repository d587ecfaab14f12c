"""`Session.dump` keeps the same promises with both engines, on each kind of server."""

import asyncio
from itertools import pairwise

import pytest

from contract.engines.dumps import LIBRARY, random_server_id, type_names
from databus_binlog import (
    ABSENT,
    CorruptEvent,
    Engine,
    FormatDescription,
    Gtid,
    GtidSet,
    Heartbeat,
    InvalidPosition,
    MissingMetadata,
    Position,
    PositionPurged,
    Query,
    Retryable,
    Rotate,
    Rows,
    Xid,
)


@pytest.fixture(params=["native", LIBRARY])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param


async def test_a_transaction_is_complete_and_has_its_position(own, schema, execute, queries, read, engine):
    await execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9))")
    await execute("CREATE TABLE b (id INT PRIMARY KEY)")
    start = await queries.current_position()
    for statement in ("BEGIN", "INSERT INTO a VALUES (1, 'é'), (2, NULL)", "INSERT INTO b VALUES (3)", "COMMIT"):
        await execute(statement)
    after = await queries.current_position()

    log = await read(engine, start)
    assert log.rows == [("a", "insert", [[b"1", "é".encode()], [b"2", None]]), ("b", "insert", [[b"3"]])]
    rotate, description, *events = log.events
    assert isinstance(rotate, Rotate)
    assert isinstance(description, FormatDescription)
    begin = ["Query"] if own.kind == "mysql" else []
    transaction = events[-4 - len(begin) :]
    assert type_names(transaction) == ["Gtid", *begin, "Rows", "Rows", "Xid"]
    gtid, *_, xid = transaction
    executed = GtidSet.parse(own.kind, start.gtid_set)
    executed.add(gtid.gtid)
    assert (str(executed), xid.file, xid.end) == (after.gtid_set, after.file, after.offset)
    assert gtid.start == start.offset
    assert all(e.file == start.file and e.start < e.end for e in transaction)
    assert all(e.end <= following.start for e, following in pairwise(transaction))
    assert all(e.statement_end and e.complete for e in events if isinstance(e, Rows))


async def test_updates_and_deletes_have_the_images_that_are_logged(execute, queries, read, engine):
    await execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9), n BIGINT UNSIGNED)")
    await execute("INSERT INTO t VALUES (1, 'one', NULL), (2, NULL, 18446744073709551615)")
    start = await queries.current_position()
    await execute("UPDATE t SET v = 'new'")
    await execute("DELETE FROM t WHERE id = 2")
    await execute("SET binlog_row_image = MINIMAL")
    await execute("UPDATE t SET n = 7")
    log = await read(engine, start)
    big = b"18446744073709551615"
    assert log.rows == [
        ("t", "update", [[b"1", b"one", None], [b"1", b"new", None], [b"2", None, big], [b"2", b"new", big]]),
        ("t", "delete", [[b"2", b"new", big]]),
        ("t", "update", [[b"1", ABSENT, ABSENT], [ABSENT, ABSENT, b"7"]]),
    ]
    [table] = log.tables.values()
    assert [(c.name, c.nullable, c.unsigned) for c in table.columns] == [
        ("id", False, False), ("v", True, None), ("n", True, True)
    ]  # fmt: skip
    assert table.key == (0,)


async def test_ddl_is_a_query_and_rows_after_it_have_the_new_columns(schema, execute, queries, read, engine):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await queries.current_position()
    await execute("INSERT INTO t VALUES (1)")
    await execute("ALTER TABLE t ADD v VARCHAR(9) COMMENT 'é日'")
    await execute("INSERT INTO t VALUES (2, 'x')")
    log = await read(engine, start)
    assert [row for _, _, [row] in log.rows] == [[b"1"], [b"2", b"x"]]
    assert (schema, "ALTER TABLE t ADD v VARCHAR(9) COMMENT 'é日'".encode()) in [
        (e.schema, e.query) for e in log.events if isinstance(e, Query)
    ]
    before, after = log.tables.values()
    assert (len(before.columns), len(after.columns)) == (1, 2)


@pytest.mark.parametrize("way", ["gtid", "file"])
async def test_reading_can_resume_after_each_transaction(own, execute, queries, read, engine, way):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await queries.current_position()
    for number in range(4):
        await execute(f"INSERT INTO t VALUES ({number})")
        if number == 1:
            await execute("FLUSH BINARY LOGS")
    events = (await read(engine, start)).events
    executed, seen = GtidSet.parse(own.kind, start.gtid_set), 0
    for event in events:
        if isinstance(event, Gtid):
            executed.add(event.gtid)
        if isinstance(event, Xid):
            seen += 1
            here = Position(str(executed)) if way == "gtid" else Position(file=event.file, offset=event.end)
            rest = await read(engine, here)
            assert [row for _, _, [row] in rest.rows] == [[b"%d" % number] for number in range(seen, 4)]
    assert seen == 4


async def test_a_follower_gets_changes_as_they_happen_and_can_close_the_stream(login, execute, queries, engine):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with asyncio.timeout(20), login() as session:
        stream = await session.dump(
            await queries.current_position(), server_id=random_server_id(), heartbeat=0.1, engine=engine
        )
        async for events in stream:
            if isinstance(list(events)[-1], Heartbeat):
                break
        following = asyncio.create_task(anext(stream))
        await execute("INSERT INTO t VALUES (1)")
        seen = list(await following)
        while "Xid" not in type_names(seen):
            seen += await anext(stream)
        assert "Rows" in type_names(seen)
        with pytest.raises(TimeoutError):  # a cancelled call loses no events
            async with asyncio.timeout(0):
                await anext(stream)
        assert len(await anext(stream))
        await stream.close()
        async for _ in stream:
            pass


async def test_a_killed_dump_raises_a_retryable_error_and_returns_no_event_twice(login, execute, queries, engine):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await queries.current_position()
    await execute("INSERT INTO t VALUES (1)")
    seen, dump = [], None
    async with asyncio.timeout(20), login() as session:
        stream = await session.dump(start, server_id=random_server_id(), heartbeat=0.1, engine=engine)
        with pytest.raises(Retryable):
            async for events in stream:
                seen += events
                if isinstance(seen[-1], Heartbeat) and dump is None:  # only once: more heartbeats may follow
                    [(dump,)] = await queries.query(
                        "SELECT MAX(ID) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'"
                    )
                    await queries.query(f"KILL {dump}")
    assert type_names(seen).count("Rows") == 1


async def test_each_unusable_position_has_its_own_error(queries, read, engine):
    end = await queries.current_position()
    assert isinstance((await read(engine, Position(file="no-such-log.000001", offset=4))).failure, PositionPurged)
    beyond = Position(file=end.file, offset=end.offset + 100_000_000)
    assert isinstance((await read(engine, beyond)).failure, InvalidPosition)
    with pytest.raises(InvalidPosition, match="beyond 4 GiB"):
        await read(engine, Position(file=end.file, offset=1 << 33))


async def test_rows_without_their_table_map_are_an_error(execute, queries, read, engine):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await queries.current_position()
    await execute("INSERT INTO t VALUES (1)")
    [rows] = [event for event in (await read(engine, start)).events if isinstance(event, Rows)]
    log = await read(engine, Position(file=rows.file, offset=rows.start))
    assert isinstance(log.failure, CorruptEvent)
    assert not log.rows


@pytest.mark.parametrize("own", ["mariadb"], indirect=True)  # MySQL always logs signs, so an INT can be decoded
async def test_rows_without_metadata_are_an_error(execute, queries, read, engine):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("SET GLOBAL binlog_row_metadata = NO_LOG")
    try:
        start = await queries.current_position()
        await execute("INSERT INTO t VALUES (1)")
        assert isinstance((await read(engine, start)).failure, MissingMetadata)
    finally:
        await execute("SET GLOBAL binlog_row_metadata = FULL")


async def test_the_log_is_read_over_an_encrypted_connection(login, execute, queries, engine, trusted):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await queries.current_position()
    await execute("INSERT INTO t VALUES (1)")
    async with login(tls=trusted) as session:
        stream = await session.dump(start, server_id=random_server_id(), follow=False, engine=engine)
        assert "Rows" in type_names([event async for events in stream for event in events])

"""Events above row_limit, on each kind of server: rows are skipped in little memory, statements are an error."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator

import pytest

from common.binlog_rows import ids
from common.connections import Execute
from databus_binlog import Event, OversizedRows, OversizedStatement, Position, Rows, RowsQuery, UnknownEvent
from databus_binlog.session import Session
from devstack import Server

#: row_limit in bytes
LIMIT = 100_000
#: bytes of text in a huge row
HUGE = 64_000_000

#: A program that prints JSON: a list of the rows events, and by how many MiB its peak memory grew. A rows event is
#: printed as the ids of its rows, an OversizedRows as its table, action, position and size.
READER = """
import asyncio, json, sys
from databus_binlog import Login, OversizedRows, Position, Rows
from databus_binlog.session import connect

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

async def main(host, port, user, password, file, offset, limit):
    async with connect(Login(host=host, port=int(port), user=user, password=password)) as session:
        start = Position(file=file, offset=int(offset))
        stream = await session.dump(start, server_id=4851, follow=False, row_limit=int(limit))
        before, found = peak(), []
        async for events in stream:
            for event in events:
                if isinstance(event, Rows):
                    found.append([image[0].decode() for image in event.images()])
                elif isinstance(event, OversizedRows):
                    table = events.tables[event.table]
                    position = event.file, event.start, event.end
                    found.append([f"{table.schema}.{table.name}", event.action, *position, event.size])
        print(json.dumps([found, (peak() - before) // 1024]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
async def execute(own: Server, execute: Execute) -> Execute:
    """Run statements in the test's schema, which has a table `t` of a storage engine that is fast with huge rows."""
    engine = "MyISAM" if own.kind == "mariadb" else "BLACKHOLE"
    await execute(f"CREATE TABLE t (id INT, b LONGBLOB) ENGINE={engine}")
    return execute


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
async def compressed(request, own: Server, admin: Session, execute: Execute) -> AsyncIterator[bool]:
    """Whether the server compresses the changes of `execute` in its log."""
    switch = "GLOBAL log_bin_compress" if own.kind == "mariadb" else "binlog_transaction_compression"
    run = admin.query if own.kind == "mariadb" else execute
    await run(f"SET {switch} = {'ON' if request.param else 'OFF'}")
    yield request.param
    await run(f"SET {switch} = OFF")


async def read_in_a_process(server: Server, start: Position) -> tuple[list[list[object]], int]:
    """Read in a process of its own; return what READER prints."""
    login = (server.host, str(server.port), server.user, server.password)
    command = [sys.executable, "-c", READER, *login, start.file, str(start.offset), str(LIMIT)]
    reader = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        printed, _ = await reader.communicate()
    found, growth = json.loads(printed)
    return found, growth


async def test_a_huge_row_is_skipped_in_little_memory(own, admin, schema, execute, compressed):
    start = await admin.current_position()
    await execute("INSERT INTO t VALUES (1, 'a')")
    before = await admin.current_position()
    await execute("INSERT INTO t VALUES (2, REPEAT('x', %s))", HUGE)
    after = await admin.current_position()
    await execute("INSERT INTO t VALUES (3, 'c')")
    found, growth = await read_in_a_process(own, start)
    first, (table, action, file, begin, end, size), last = found
    assert (first, last) == (["1"], ["3"])
    assert (table, action, file) == (f"{schema}.t", "insert", before.file)
    assert before.offset < begin < end <= after.offset
    assert 0 < size - HUGE < 100
    assert (end - begin < LIMIT) if compressed else (end - begin == size)
    assert growth < 50, growth


async def read(admin: Session, start: Position, **options: object) -> list[Event]:
    stream = await admin.dump(start, server_id=4852, follow=False, row_limit=LIMIT, **options)
    return [event async for events in stream for event in events]


async def test_a_rows_query_above_the_limit_is_skipped(own, admin, execute):
    if own.kind == "mysql":
        await execute("SET binlog_rows_query_log_events = ON")
    start = await admin.current_position()
    await execute("INSERT INTO t VALUES (1, 'a')")
    await execute("INSERT INTO t VALUES (2, %s)", "x" * LIMIT)
    events = await read(admin, start, statements=True)
    assert ids(events) == [b"1"]
    assert [event.query for event in events if isinstance(event, RowsQuery)] == [b"INSERT INTO t VALUES (1, 'a')"]
    assert [event.action for event in events if isinstance(event, OversizedRows)] == ["insert"]


async def test_a_statement_above_the_limit_is_an_error(admin, execute):
    await execute("SET binlog_format = STATEMENT")
    start = await admin.current_position()
    await execute("INSERT INTO t VALUES (1, %s)", "x" * LIMIT)
    with pytest.raises(OversizedStatement, match=rf"at {start.file}:\d+ .* above row_limit \({LIMIT}\)"):
        await read(admin, start)


async def test_rows_above_the_limit_are_an_error_of_the_engine_mysql_replication(own, admin, execute):
    end = await admin.current_position()
    start = Position(file=end.file, offset=end.offset)  # the library can't read a GTID set with another test's tags
    await execute("INSERT INTO t VALUES (1, 'a')")
    await execute("INSERT INTO t VALUES (2, REPEAT('x', %s))", LIMIT)
    stream = await admin.dump(start, server_id=4853, follow=False, row_limit=LIMIT, engine="mysql-replication")
    seen = []
    with pytest.raises(UnknownEvent, match=r"are above row_limit"):
        async for events in stream:
            seen += [event for event in events if isinstance(event, Rows)]
    assert ids(seen) == [b"1"]

"""Traps for a reader of binlogs, such as settings that change while it reads, and events that few servers write.

A number like t19 in the name of a test, here or elsewhere, stands for a trap: a case that readers of binlogs often get
wrong. The trap is described at its tests.
"""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from common.binlog_rows import read_rows
from common.connections import RESET, Connect, printing
from databus_binlog import ABSENT, EventStream, MissingMetadata, PartialRowImage, Position, Rows, TableMap, Value
from databus_binlog.session import Session
from devstack import Server

only_mariadb = pytest.mark.parametrize("own", ["mariadb"], indirect=True)
only_mysql = pytest.mark.parametrize("own", ["mysql"], indirect=True)


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture
async def stream(login: Connect, admin: Session, schema: str) -> AsyncIterator[EventStream]:
    """Read the changes of the test's schema from now on."""
    start = await admin.current_position()
    async with login() as session:
        yield await session.dump(start, server_id=4841, wanted=lambda name, _: name == schema)


async def images(stream: EventStream, count: int) -> list[tuple[TableMap, list[Value]]]:
    """Read this many row images."""
    found: list[tuple[TableMap, list[Value]]] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            events = await anext(stream)
            rows = [event for event in events if isinstance(event, Rows)]
            found += [(events.tables[event.table], image) for event in rows for image in event.images()]
    return found


# --- T1: a compressed transaction is larger than a packet, or its content is larger than the memory

#: a program that prints the number of row images, and by how many MiB its peak memory grew
READER = """
import asyncio, sys
from databus_binlog import Login, Position
from databus_binlog.session import connect

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

async def main(host, port, user, password, schema, gtid_set):
    async with connect(Login(host=host, port=int(port), user=user, password=password)) as session:
        start = Position(gtid_set=gtid_set)
        stream = await session.dump(start, server_id=4842, follow=False, wanted=lambda name, _: name == schema)
        before, images = peak(), 0
        async for events in stream:
            images += events.images
        print(images, (peak() - before) // 1024)

asyncio.run(main(*sys.argv[1:]))
"""


async def read_in_a_process(server: Server, schema: str, start: Position) -> tuple[int, int]:
    """Read in a process of its own; return what READER prints."""
    login = (server.host, str(server.port), server.user, server.password)
    command = [sys.executable, "-c", READER, *login, schema, start.gtid_set]
    reader = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        printed, _ = await reader.communicate()
    images, growth = map(int, printed.split())
    return images, growth


async def logged(admin: Session, start: Position, name: str) -> list[tuple[str, int]]:
    """Return type and size of the events whose type, as the server names it, contains `name`."""
    events = await admin.query(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")
    return [(kind, end - begin) for _, begin, kind, _, end, _ in events if name in kind]


@only_mysql
async def test_t1_a_compressed_transaction_of_several_packets_is_read_in_little_memory(own, admin, schema, execute):
    rng = random.Random(1)
    blobs = [rng.randbytes(4 << 20) for _ in range(6)]
    # The table stores nothing, but its rows are logged.
    await execute("CREATE TABLE t (id INT, b LONGBLOB) ENGINE=BLACKHOLE")
    await execute("SET binlog_transaction_compression = ON")
    start = await admin.current_position()
    await execute("BEGIN")
    for number, blob in enumerate(blobs):
        await execute(f"INSERT INTO t VALUES ({number}, x'{blob.hex()}')")
    await execute("COMMIT")
    [(_, size)] = await logged(admin, start, "Transaction_payload")
    assert size > 24 << 20

    read = [image for _, rows in await read_rows(own, start, schema) for image in rows.images()]
    assert read == [[b"%d" % number, blob] for number, blob in enumerate(blobs)]
    count, growth = await read_in_a_process(own, schema, start)
    assert count == len(blobs)
    assert growth < 100, growth


@only_mysql
async def test_t1_a_transaction_that_is_much_larger_when_decompressed_is_read_in_little_memory(
    own, admin, schema, execute
):
    await execute("CREATE TABLE t (b LONGBLOB) ENGINE=BLACKHOLE")
    await execute("SET binlog_transaction_compression = ON")
    start = await admin.current_position()
    await execute(
        "INSERT INTO t WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200)"
        " SELECT REPEAT(x'00', 1000000) FROM numbers"
    )
    [(_, size)] = await logged(admin, start, "Transaction_payload")
    assert size < 20_000
    count, growth = await read_in_a_process(own, schema, start)
    assert count == 200
    assert growth < 100, growth


# --- T2: from some moment on, JSON is logged as differences


@only_mysql
async def test_t2_json_that_is_logged_as_differences_is_read_completely(own, admin, schema, execute, stream):
    start = await admin.current_position()
    await execute("CREATE TABLE t (id INT PRIMARY KEY, a JSON, b JSON)")
    await execute("""INSERT INTO t VALUES (1, '{"k": [1, 2.5], "long": "xxxxxxxxxxxxxxxx"}', '[1, 2]')""")
    await execute("UPDATE t SET a = JSON_SET(a, '$.k[0]', 'one')")
    await execute("SET binlog_row_value_options = PARTIAL_JSON")
    printed = []
    async with printing(own) as run:
        for change in (
            "a = JSON_SET(a, '$.k[1]', 3)",
            "a = JSON_REMOVE(a, '$.k'), b = JSON_SET(b, '$[1]', NULL)",
            "b = NULL",
        ):
            await execute(f"UPDATE t SET {change}")
            printed += await run(f"SELECT * FROM {schema}.t")
    assert [kind for kind, _ in await logged(admin, start, "Update_rows")] == [
        "Update_rows",
        "Update_rows_partial",
        "Update_rows_partial",
        "Update_rows_partial",
    ]
    _, *updates = [image for _, image in await images(stream, 9)]  # after the insert
    before, after = updates[::2], updates[1::2]
    assert after[1:] == printed
    assert before[1:] == [after[0], *printed[:2]]


@only_mysql
async def test_t2_a_json_difference_without_its_before_image_is_an_error(schema, execute, stream):
    await execute("CREATE TABLE t (id INT PRIMARY KEY, a JSON)")
    await execute("""INSERT INTO t VALUES (1, '{"k": 1, "long": "xxxxxxxxxxxxxxxx"}')""")
    await execute("SET binlog_row_value_options = PARTIAL_JSON, binlog_row_image = MINIMAL")
    await execute("UPDATE t SET a = JSON_SET(a, '$.k', 2)")
    with pytest.raises(PartialRowImage, match=rf"column a of {schema}\.t .*binlog_row_image=FULL"):
        await images(stream, 3)


@pytest.fixture
async def set_global(admin: Session) -> AsyncIterator[Callable[[str, str], Awaitable[None]]]:
    """Set global variables until the test ends."""
    before = {}

    async def run(name: str, value: str) -> None:
        before.setdefault(name, (await admin.query(f"SELECT @@GLOBAL.{name}"))[0][0])
        await admin.query(f"SET GLOBAL {name} = {value}")

    yield run
    for name, value in before.items():
        await admin.query(f"SET GLOBAL {name} = {value!r}")


# --- T3: from some moment on, events are compressed


@only_mariadb
async def test_t3_compressed_events_among_others_are_read(admin, execute, stream, set_global):
    await execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000))")
    start = await admin.current_position()
    for number, switch in enumerate(("OFF", "ON", "OFF", "ON")):
        await set_global("log_bin_compress", switch)
        await execute("INSERT INTO t VALUES (%s, REPEAT('é', 1000))", number)
        await execute("UPDATE t SET v = REPEAT('x', %s)", 1000 + number)
        await execute("DELETE FROM t")
    assert [kind for kind, _ in await logged(admin, start, "_rows_")] == [
        "Write_rows_v1",
        "Update_rows_v1",
        "Delete_rows_v1",
        "Write_rows_compressed_v1",
        "Update_rows_compressed_v1",
        "Delete_rows_compressed_v1",
    ] * 2
    read = [image for _, image in await images(stream, 16)]
    for number in range(4):
        inserted, updated = ([b"%d" % number, text] for text in ("é".encode() * 1000, b"x" * (1000 + number)))
        assert read[4 * number : 4 * number + 4] == [inserted, inserted, updated, updated]


# --- T7: from some moment on, less table metadata is logged


async def test_t7_columns_without_logged_names_get_no_name_until_names_are_logged_again(execute, stream, set_global):
    await execute("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, v VARCHAR(9) CHARACTER SET latin1, e ENUM('x'))")
    await execute("INSERT INTO t VALUES (4294967295, 'é', 'x')")
    await set_global("binlog_row_metadata", "MINIMAL")
    await execute("UPDATE t SET v = 'ü'")
    await set_global("binlog_row_metadata", "FULL")
    await execute("DELETE FROM t")
    (named, inserted), (unnamed, before), (_, after), (named_again, deleted) = await images(stream, 4)
    assert inserted == before == [b"4294967295", "é".encode(), b"1"]
    assert after == deleted == [b"4294967295", "ü".encode(), b"1"]
    assert [(table.has_names, [column.name for column in table.columns]) for table in (named, unnamed)] == [
        (True, ["id", "v", "e"]),
        (False, ["", "", ""]),
    ]
    assert named_again == named


@only_mariadb
async def test_t7_a_sign_that_is_not_logged_any_more_is_an_error_and_not_guessed(schema, execute, stream, set_global):
    await execute("CREATE TABLE unambiguous (d DECIMAL(5,2), t DATETIME(6), b BIT(9), y DOUBLE)")
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    await set_global("binlog_row_metadata", "NO_LOG")
    await execute("INSERT INTO unambiguous VALUES (-1.5, '2021-02-03 04:05:06.000007', b'100000001', 0.1)")
    (named, _), (unnamed, values) = await images(stream, 2)
    assert (named.has_names, unnamed.has_names) == (True, False)
    assert values == [b"-1.50", b"2021-02-03 04:05:06.000007", b"257", b"0.1"]
    await execute("INSERT INTO t VALUES (2)")
    with pytest.raises(MissingMetadata, match=rf"column 0 of {schema}\.t: .* set binlog_row_metadata=FULL"):
        await images(stream, 1)


#: kind of server → a change of the column `b` that TABLE_MAP does not show if the server logs the least metadata, and a
#: value for the changed column
UNLOGGED_CHANGES = {"mysql": ("CHANGE b c INT", "4"), "mariadb": ("CHANGE b c INT UNSIGNED", "4294967295")}


async def test_t7_a_table_without_names_is_described_again_after_ddl(own, admin, schema, execute, set_global):
    change, value = UNLOGGED_CHANGES[own.kind]
    await set_global("binlog_row_metadata", "MINIMAL" if own.kind == "mysql" else "NO_LOG")
    start = await admin.current_position()
    await execute("CREATE TABLE t (a INT, b INT)")
    await execute("INSERT INTO t VALUES (1, 7)")
    await execute(f"ALTER TABLE t {change}, CHANGE a b INT")
    await execute(f"INSERT INTO t VALUES (2, {value})")
    descriptions = iter([{"a": False, "b": False}, {"b": False, "c": "UNSIGNED" in change}])

    def describe(table: TableMap) -> TableMap:
        known = zip(table.columns, next(descriptions).items(), strict=True)
        columns = [msgspec.structs.replace(column, name=name, unsigned=unsigned) for column, (name, unsigned) in known]
        return msgspec.structs.replace(table, columns=tuple(columns))

    read = [
        ([column.name for column in table.columns], rows.images())
        for table, rows in await read_rows(own, start, schema, describe)
    ]
    assert read == [(["a", "b"], [[b"1", b"7"]]), (["b", "c"], [[b"2", value.encode()]])]


# --- T12: columns that the server adds to a table


@only_mariadb
async def test_t12_hidden_hash_columns_are_left_out(own, admin, schema, execute):
    """For each unique index on a whole TEXT or BLOB, MariaDB adds a column with a hash after the table's columns."""
    start = await admin.current_position()
    columns = "db_row_hash_1 BIGINT UNSIGNED PRIMARY KEY, a TEXT, b BLOB"
    await execute(f"CREATE TABLE t ({columns}, UNIQUE (a), UNIQUE (b, a))")
    await execute("INSERT INTO t VALUES (1, 'x', 'y'), (2, 'z', NULL), (3, NULL, NULL)")
    await execute("SET binlog_row_image = MINIMAL")
    await execute("UPDATE t SET a = 'new' WHERE db_row_hash_1 = 1")
    (table, inserted), (_, updated) = await read_rows(own, start, schema)
    assert [column.name for column in table.columns] == ["db_row_hash_1", "a", "b"]
    assert inserted.images() == [[b"1", b"x", b"y"], [b"2", b"z", None], [b"3", None, None]]
    assert updated.images() == [[b"1", ABSENT, ABSENT], [ABSENT, b"new", ABSENT]]


@only_mariadb
async def test_t12_the_history_of_a_versioned_table_can_be_read_from_its_rows(own, admin, schema, execute):
    start = await admin.current_position()
    await execute("CREATE TABLE t (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING")
    for statement in (
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "UPDATE t SET a = 7 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
    ):
        await execute(statement)
    history: set[tuple[Value, ...]] = set()
    for table, rows in await read_rows(own, start, schema):
        assert [column.name for column in table.columns] == ["id", "a", "row_start", "row_end"]
        assert [table.columns[index].name for index in table.key] == ["id", "row_end"]
        changed = [tuple(image) for image in rows.images()]
        history.update(changed[1::2] if rows.action == "update" else changed)
        history.difference_update(changed[::2] if rows.action == "update" else [])
    async with printing(own) as run:
        printed = await run(f"SELECT id, a, row_start, row_end FROM {schema}.t FOR SYSTEM_TIME ALL")
    assert history == {tuple(row) for row in printed}
    assert len(history) == 3


# --- T19: the log continues after the file .999999 in files with longer names


async def test_t19_reading_continues_after_file_999999(own, admin, schema, execute):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute(f"{RESET[own.kind]} TO 999999")
    start = await admin.current_position()
    for number in range(3):
        await execute(f"INSERT INTO t VALUES ({number})")
        await execute("FLUSH BINARY LOGS")
    files = ["binlog.999999", "binlog.1000000", "binlog.1000001"]
    for position in (start, Position(file=start.file, offset=start.offset)):
        read = [rows for _, rows in await read_rows(own, position, schema)]
        assert [(rows.file, rows.images()) for rows in read] == [(files[n], [[b"%d" % n]]) for n in range(3)]
        after = Position(file=read[1].file, offset=read[1].end)
        assert [rows for _, rows in await read_rows(own, after, schema)] == read[2:]
    assert (await admin.earliest_position()).file == files[0]
    assert (await admin.current_position()).file == "binlog.1000002"


# --- T20: newer servers have other statements and methods of authentication


@only_mysql
async def test_t20_mysql_9_is_read_with_its_default_authentication(own, login, schema, execute):
    async with printing(own) as run:
        with pytest.raises(Exception, match="syntax"):
            await run("SHOW MASTER STATUS")  # which older servers have
    await execute("CREATE USER t20 IDENTIFIED WITH caching_sha2_password BY 'secret'")
    await execute("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO t20")
    try:
        await execute("CREATE TABLE t (id INT PRIMARY KEY)")
        async with login(user="t20", password="secret") as session:
            start = await session.current_position()
            await execute("INSERT INTO t VALUES (1)")
            stream = await session.dump(start, server_id=4843, wanted=lambda name, _: name == schema)
            assert [image for _, image in await images(stream, 1)] == [[b"1"]]
    finally:
        await execute("DROP USER t20")

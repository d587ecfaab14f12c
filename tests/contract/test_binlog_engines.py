"""Both engines keep the contract of a dump, on each kind of server; where mysql-replication is wrong, it says so."""

import asyncio
import re
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from typing import NamedTuple

import msgspec
import pytest

from common.column_types import Column, tables
from common.connections import RESET, Connect, printing
from databus_binlog import (
    ABSENT,
    AnyEvent,
    BinlogError,
    CorruptEvent,
    Engine,
    EngineUnavailable,
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
    RowsQuery,
    TableMap,
    UnknownEvent,
    UnsupportedColumn,
    Value,
    Xid,
)
from databus_binlog.mysql_replication import limits
from databus_binlog.session import Session
from devstack import Kind, Server

LIBRARY: Engine = "mysql-replication"

#: Values that mysql-replication 1.0.17 misreads or confuses with others: the type of their column, their text
#: (NULL is "NULL"), and the words with which they are refused
WRONG_VALUES = [
    (r"TIME\(\d\)", r"-.*\.\d*[1-9]\d*", "a negative time with a fraction"),  # -00:00:00.1 is -00:00:00.9 to it
    (r"DATE(TIME\(\d\))?", r".*-00\b.*", "a date that the calendar does not have"),  # None to it
    (r".* latin1", ".*[\x81\x8d\x8f\x90\x9d].*", "UnicodeDecodeError"),  # its codec has holes
    ("JSON", "NULL|null", "either NULL or JSON's null"),  # None, both
    ("JSON", r'.*"(-?\d+:\d\d:|\d{4}-\d\d-|base64:).*', "the type of a value in its JSON|ValueError"),
]
#: Types of which it misreads all values
WRONG_TYPES = [
    (r"ENUM\(.* latin1", "its labels"),  # it takes them for UTF-8, and for empty if they are not
    (r".*SET (big5|cp932|eucjpms|euckr|gb18030|greek|hebrew|sjis|ujis)", "text in"),  # Python has some otherwise
    (r".*SET (swe7|ucs2|utf16|utf16le|utf32)", "text in"),  # no codec, or that of another byte order
    (r"VECTOR\(\d\)", "the type VECTOR"),  # ValueError: 0 is not a valid MetadataFieldType
    (r".* COMPRESSED.*", "the type (BLOB|VARCHAR)_COMPRESSED"),  # AssertionError or ValueError
]

EITHER: tuple[Kind, ...] = ("mariadb", "mysql")
#: Other faults: the servers, the statements, and the words with which the last one is refused
WRONG_EVENTS: dict[str, tuple[tuple[Kind, ...], list[str], str]] = {
    # It leaves them out.
    "compressed transactions": (
        ("mysql",),
        ["SET binlog_transaction_compression = ON", "INSERT INTO t VALUES (1, '[]')"],
        "type 40",
    ),
    "compressed rows": (
        ("mariadb",),
        ["SET GLOBAL log_bin_compress = ON", "INSERT INTO t VALUES (1, JSON_QUOTE(REPEAT('x', 500)))"],
        "type 166",
    ),
    # It reads one difference and drops the others.
    "JSON as differences": (
        ("mysql",),
        ["SET binlog_row_value_options = PARTIAL_JSON", "UPDATE t SET j = JSON_SET(j, '$.a', 1, '$.b', 2)"],
        "type 39",
    ),
    # It does not know the status variables 21 and 130.
    "statements that change rows": (
        ("mysql",),
        ["SET binlog_format = STATEMENT", "INSERT INTO t VALUES (1, '[]')"],
        "StatusVariableMismatch",
    ),
    "ALTER in two phases": (
        ("mariadb",),
        ["SET binlog_alter_two_phase = ON", "ALTER TABLE t ADD more INT"],
        "StatusVariableMismatch",
    ),
    # It reads them as UTF-8.
    "statements in Latin-1": (
        EITHER,
        ["SET NAMES latin1", "ALTER TABLE t COMMENT 'é'"],
        "can't read the statement",
    ),
    # It misreads lengths above 127.
    "long names": (
        EITHER,
        [f"ALTER TABLE t ADD {'日' * 50} INT", "INSERT INTO t VALUES (1, '[]', 1)"],
        "AssertionError",
    ),
    "long labels": (
        EITHER,
        [f"ALTER TABLE t ADD more ENUM('{'x' * 200}')", "INSERT INTO t VALUES (1, '[]', 1)"],
        "AssertionError",
    ),
}


class Log(NamedTuple):
    """The result of a dump."""

    events: list[AnyEvent]
    tables: dict[str, TableMap]
    failure: BinlogError | None

    @property
    def rows(self) -> list[tuple[str, str, list[list[Value]]]]:
        return [(self.tables[e.table].name, e.action, e.images()) for e in self.events if isinstance(e, Rows)]

    @property
    def comparable(self) -> list[object]:
        """The events with their rows decoded, without the fields of a GTID that only one engine has."""
        return [
            (*msgspec.structs.astuple(e)[:-1], e.images())
            if isinstance(e, Rows)
            else msgspec.structs.replace(e, commit_time_us=0, alter="")
            if isinstance(e, Gtid)
            else e
            for e in self.events
        ]


Read = Callable[..., Awaitable[Log]]


@pytest.fixture
def source(own: Server) -> Server:
    return own


@pytest.fixture(params=["native", LIBRARY])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param


@pytest.fixture
async def queries(login: Connect) -> AsyncIterator[Session]:
    async with login() as session:
        if re.search(":[a-z]", (await session.current_position()).gtid_set):
            await session.query(RESET["mysql"])  # the library can't read a set with another test's tags
        yield session


@pytest.fixture
def read(login: Connect, schema: str) -> Read:
    """Read with an engine from a position to the end of the log."""

    async def run(engine: Engine, position: Position, **options: object) -> Log:
        log = Log([], {}, None)
        async with login() as session:
            options = {"wanted": lambda name, _: name == schema} | options
            stream = await session.dump(position, server_id=replica(), follow=False, engine=engine, **options)
            try:
                async for events in stream:
                    log.events.extend(events)
                    log.tables.update(events.tables)
            except BinlogError as failure:
                return log._replace(failure=failure)
        return log

    return run


def replica() -> int:
    return secrets.randbelow(2**31) + 1000


def names(events: list[AnyEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


# --- the contract


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
    assert names(transaction) == ["Gtid", *begin, "Rows", "Rows", "Xid"]
    gtid, *_, xid = transaction
    executed = GtidSet.parse(own.kind, start.gtid_set)
    executed.add(gtid.gtid)
    assert (str(executed), xid.file, xid.end) == (after.gtid_set, after.file, after.offset)
    assert gtid.start == start.offset
    assert all(e.file == start.file and e.start < e.end <= then.start for e, then in pairwise(transaction))
    assert all(e.statement_end and e.complete for e in events if isinstance(e, Rows))


async def test_updates_have_before_and_after_images(execute, queries, read, engine):
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
    assert table.primary_key == (0,)


async def test_ddl_is_a_statement_and_rows_after_it_have_the_new_layout(schema, execute, queries, read, engine):
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
async def test_reading_resumes_after_each_transaction(own, execute, queries, read, engine, way):
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


async def test_a_follower_gets_changes_as_they_happen_and_can_disconnect(login, execute, queries, engine):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with asyncio.timeout(20), login() as session:
        stream = await session.dump(await queries.current_position(), server_id=replica(), heartbeat=0.1, engine=engine)
        async for events in stream:
            if isinstance(list(events)[-1], Heartbeat):
                break
        following = asyncio.create_task(anext(stream))
        await execute("INSERT INTO t VALUES (1)")
        seen = list(await following)
        while "Xid" not in names(seen):
            seen += await anext(stream)
        assert "Rows" in names(seen)
        with pytest.raises(TimeoutError):  # events that arrive meanwhile are not lost
            async with asyncio.timeout(0):
                await anext(stream)
        assert len(await anext(stream))
        await stream.close()
        async for _ in stream:
            pass


async def test_a_dump_that_is_killed_can_be_retried_and_repeats_nothing(login, execute, queries, engine):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await queries.current_position()
    await execute("INSERT INTO t VALUES (1)")
    seen, dump = [], None
    async with asyncio.timeout(20), login() as session:
        stream = await session.dump(start, server_id=replica(), heartbeat=0.1, engine=engine)
        with pytest.raises(Retryable):
            async for events in stream:
                seen += events
                if isinstance(seen[-1], Heartbeat) and dump is None:  # more of them may be in flight
                    [(dump,)] = await queries.query(
                        "SELECT MAX(ID) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'"
                    )
                    await queries.query(f"KILL {dump}")
    assert names(seen).count("Rows") == 1


async def test_each_unusable_position_has_its_own_error(own, queries, read, engine):
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


@pytest.mark.parametrize("own", ["mariadb"], indirect=True)  # MySQL always logs signs, and so rows for one of them
async def test_rows_without_metadata_are_an_error(own, schema, execute, queries, read, engine):
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
        stream = await session.dump(start, server_id=replica(), follow=False, engine=engine)
        assert "Rows" in names([event async for events in stream for event in events])


# --- comparison of the engines


@pytest.mark.parametrize("way", ["gtid", "file"])
async def test_both_engines_return_the_same_events(own, execute, queries, read, way):
    start = await queries.current_position()
    index = "UNIQUE ((id + 1)), INDEX ((LEFT(v, 9)))" if own.kind == "mysql" else "UNIQUE (v)"  # by hidden columns
    for statement in (
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(50)) PARTITION BY HASH (id) PARTITIONS 3",
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        f"CREATE TABLE h (id INT PRIMARY KEY, v TEXT, double_id INT AS (id * 2) VIRTUAL, {index})",
        *("XA START 'q', 'b', 7", "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')", "XA END 'q', 'b', 7"),
        *("XA PREPARE 'q', 'b', 7", "XA COMMIT 'q', 'b', 7"),
        *("XA START 'r'", "INSERT INTO p VALUES (1), (2)", "XA END 'r'", "XA COMMIT 'r' ONE PHASE"),
        *("INSERT INTO c VALUES (1)", "DELETE FROM p WHERE id = 1"),
        *("INSERT INTO h (id, v) VALUES (1, 'X')", "UPDATE h SET v = 'Y'"),
        *("BEGIN", "UPDATE t SET id = id + 10", "SAVEPOINT s", "DELETE FROM t", "ROLLBACK TO s", "COMMIT"),
        "UPDATE t, p SET v = 'both', p.id = 5",
        "FLUSH BINARY LOGS",
        "INSERT INTO t SELECT id + 100, REPEAT('é', 50) FROM t",
        *("SET binlog_row_image = NOBLOB", "ALTER TABLE t ADD b TEXT", "UPDATE t SET v = 'z' LIMIT 2"),
        *("TRUNCATE TABLE c", "DROP TABLE c"),
    ):
        await execute(statement)
    if way == "file":
        start = Position(file=start.file, offset=start.offset)
    ours, theirs = await read("native", start), await read(LIBRARY, start)
    assert theirs.failure is None
    assert theirs.comparable == ours.comparable
    assert theirs.tables == ours.tables
    assert {(table, action) for table, action, _ in ours.rows} >= {
        *(("t", "insert"), ("t", "update"), ("p", "delete"), ("c", "insert"), ("h", "update"), ("p", "update")),
    }


async def test_both_engines_return_the_statements(own, execute, queries, read):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    if own.kind == "mysql":
        await execute("SET binlog_rows_query_log_events = ON")
    start = await queries.current_position()
    await execute("INSERT INTO t VALUES (1) /* é */")
    ours, theirs = [await read(engine, start, statements=True) for engine in ("native", LIBRARY)]
    assert theirs.comparable == ours.comparable
    assert ["INSERT INTO t VALUES (1) /* é */".encode()] == [e.query for e in ours.events if isinstance(e, RowsQuery)]


async def test_large_rows_arrive_complete_and_once(own, execute, queries, read):
    """The library's dump command is a byte too long, for which MariaDB resets the connection at the end of the log."""
    await execute("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB)")
    start = await queries.current_position()
    for number in range(2):
        await execute(f"INSERT INTO t VALUES ({number}, REPEAT('x', 17000000))")
    theirs = await read(LIBRARY, start)
    assert theirs.failure is None
    assert theirs.comparable == (await read("native", start)).comparable


async def test_each_value_reads_as_the_server_prints_it_or_is_refused(own, schema, queries, read):
    columns = [
        column
        for table in tables(own.kind)
        if table.name != "derived"
        # test_binlog_matrix.py has every shape of a DECIMAL
        for column in (table.columns[::4] if table.name == "decimals" else table.columns)
        if not column.generated
    ]
    start = await queries.current_position()
    printed = await insert_each(own, schema, columns)
    ours = await read("native", start)
    assert [image for _, _, [[image]] in ours.rows] == [text for _, text in printed]
    ends = [Position(file=event.file, offset=event.end) for event in ours.events if isinstance(event, Xid)]

    at, refused = 0, set()
    while at < len(printed):
        log = await read(LIBRARY, ends[at - 1] if at else start)
        come = [image for _, _, [[image]] in log.rows]
        assert come == [text for _, text in printed[at : at + len(come)]]
        assert not any(expected_refusal(column, text) for column, text in printed[at : at + len(come)])
        at += len(come)
        if at < len(printed):
            column, text = printed[at]
            words = expected_refusal(column, text)
            assert words
            assert isinstance(log.failure, UnsupportedColumn)
            assert re.search(words, str(log.failure))
            refused.add(words)
            at += 1
            while words in dict(WRONG_TYPES).values() and at < len(printed) and printed[at][0] is column:
                at += 1  # the same with all of its values
    elsewhere = "COMPRESSED" if own.kind == "mysql" else "VECTOR|JSON"
    everything = {words for *_, words in (*WRONG_VALUES, *WRONG_TYPES)}
    assert refused == {words for words in everything if not re.search(elsewhere, words)}


async def insert_each(own: Server, schema: str, columns: list[Column]) -> list[tuple[Column, bytes | None]]:
    """Insert each value of each column in a transaction of its own; return their texts as the server prints them."""
    printed: list[tuple[Column, bytes | None]] = []
    async with printing(own) as run:
        await run(f"USE {schema}")
        for number, column in enumerate(columns):
            await run(f"CREATE TABLE t{number} (c {column.type})")
        for number, column in enumerate(columns):
            for value in [*column.values, "NULL"]:
                await run(f"INSERT INTO t{number} VALUES ({value})")
            printed += [(column, text) for (text,) in await run(f"SELECT {column.text('c')} FROM t{number}")]
    return printed


def expected_refusal(column: Column, text: bytes | None) -> str | None:
    """Return the words with which the library's engine must refuse a value."""
    for kind, words in WRONG_TYPES:
        if re.fullmatch(kind, column.type):
            return words
    shown = "NULL" if text is None else text.decode("utf-8", "replace")
    for kind, value, words in WRONG_VALUES:
        if re.fullmatch(kind, column.type) and re.fullmatch(value, shown, re.DOTALL):
            return words
    return None


@pytest.mark.parametrize(
    ("own", "what"), [(kind, what) for what, (kinds, *_) in WRONG_EVENTS.items() for kind in kinds], indirect=["own"]
)
async def test_what_the_library_gets_wrong_is_refused(own, execute, queries, read, what):
    _, statements, words = WRONG_EVENTS[what]
    await execute("CREATE TABLE t (id INT PRIMARY KEY, j JSON NOT NULL)")
    start = await queries.current_position()
    await execute("""INSERT INTO t VALUES (0, '{"a": "xxxxxxxxxx", "b": "xxxxxxxxxx"}')""")
    start = Position(file=start.file, offset=start.offset)
    good = await read("native", start)
    try:
        for statement in statements:
            await execute(statement)
    finally:
        await execute("SET GLOBAL log_bin_compress = OFF" if own.kind == "mariadb" else "SET gtid_next = AUTOMATIC")
    ours, theirs = await read("native", start), await read(LIBRARY, start)
    assert ours.failure is None
    assert isinstance(theirs.failure, (UnknownEvent, UnsupportedColumn))
    assert re.search(words, str(theirs.failure))
    assert len(good.events) <= len(theirs.events) < len(ours.events)
    assert theirs.comparable == ours.comparable[: len(theirs.events)]


async def test_the_library_refuses_files_whose_checksum_setting_differs_from_the_servers(own, execute, queries, read):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("SET GLOBAL binlog_checksum = NONE")
    try:
        start = await queries.current_position()
        await execute("INSERT INTO t VALUES (1)")
        assert (await read(LIBRARY, start)).rows == (await read("native", start)).rows
    finally:
        await execute("SET GLOBAL binlog_checksum = CRC32")
    assert (await read("native", start)).failure is None
    assert "binlog_checksum" in str((await read(LIBRARY, start)).failure)


# --- the choice


async def test_an_engine_that_is_missing_says_what_to_install(login, queries, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("databus_binlog.mysql_replication")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pymysqlreplication", None)
    advice = r"pip install 'databus-binlog\[mysql-replication\]'"
    async with login() as session:
        with pytest.raises(EngineUnavailable, match=advice):
            await session.dump(await queries.current_position(), server_id=replica(), engine=LIBRARY)
        with pytest.raises(EngineUnavailable, match=advice):
            await session.engine_faults(LIBRARY)


@pytest.mark.parametrize(
    ("own", "setting", "value", "readable"),
    [
        ("mariadb", "log_bin_compress", "ON", "OFF"),
        ("mariadb", "binlog_alter_two_phase", "ON", "OFF"),
        ("mariadb", "binlog_row_metadata", "MINIMAL", "FULL"),
        ("mysql", "binlog_row_metadata", "MINIMAL", "FULL"),
        ("mysql", "binlog_transaction_compression", "ON", "OFF"),
        ("mysql", "binlog_row_value_options", "PARTIAL_JSON", ""),
    ],
    indirect=["own"],
)
async def test_a_setting_that_the_library_cannot_read_is_a_fault_of_the_server(
    own, execute, login, setting, value, readable
):
    await execute(f"SET GLOBAL {setting} = '{value}'")
    try:
        async with login() as session:
            [fault] = await session.engine_faults(LIBRARY, lambda *_: False)
            assert re.match(rf"{setting} is {value}, with which mysql-replication .*: set it to '{readable}'", fault)
            assert await session.engine_faults("native") == []
    finally:
        await execute(f"SET GLOBAL {setting} = '{readable}'")
    async with login() as session:
        assert await session.engine_faults(LIBRARY, lambda *_: False) == []


async def test_columns_that_the_library_cannot_read_are_faults_of_wanted_tables(
    own, schema, execute, login, monkeypatch
):
    matrix = [table for table in tables(own.kind) if table.name != "derived"]
    refused = {
        f"{schema}.{table.name}.c{place}"
        for table in matrix
        for place, column in enumerate(table.columns)
        if any(re.fullmatch(pattern, column.type) for pattern, _ in WRONG_TYPES)
    }
    for table in matrix:
        for statement in table.creation:
            await execute(statement)
    name, label = "日" * 50, "x" * 200
    await execute(f"CREATE TABLE others ({name} INT, e ENUM('{label}'), f ENUM('a', ''), g SET('a', ''))")
    await execute(f"CREATE TABLE swe ({', '.join(f'c{place} TEXT CHARACTER SET swe7' for place in range(7))})")
    async with login() as session:

        async def faults(*names: str) -> list[str]:
            found = await session.engine_faults(LIBRARY, lambda *table: table in {(schema, name) for name in names})
            return [fault.removeprefix("mysql-replication can't read ") for fault in found]

        assert await faults("others") == [
            f"column names of more than 127 bytes: exclude the tables of {schema}.others.{name}",
            f"labels of more than 127 bytes: exclude the tables of {schema}.others.e",
            f"empty labels: exclude the tables of {schema}.others.f",
        ]
        listed = ", ".join(f"{schema}.swe.c{place}" for place in range(5))
        assert await faults("swe") == [f"text in swe7: exclude the tables of {listed} and 2 more"]
        monkeypatch.setattr(limits, "_NAMED", 1000)
        found = await faults(*(table.name for table in matrix))
    assert {column for fault in found for column in re.findall(rf"{schema}\.\S+\.c\d+", fault)} == refused


@pytest.mark.parametrize("own", ["mysql"], indirect=True)
async def test_the_library_reads_a_server_with_tagged_gtids_from_files_only_and_up_to_the_tag(
    own, execute, queries, read
):
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await queries.current_position()
    await execute("INSERT INTO t VALUES (1)")
    await execute("SET gtid_next = 'AUTOMATIC:tag'")
    await execute("INSERT INTO t VALUES (2)")
    log = await read(LIBRARY, start)
    assert isinstance(log.failure, UnknownEvent)
    assert log.rows == [("t", "insert", [[b"1"]])]
    tagged = await queries.current_position()
    with pytest.raises(InvalidPosition, match="can't read the GTID set"):
        await read(LIBRARY, tagged)
    assert (await read(LIBRARY, Position(file=tagged.file, offset=tagged.offset))).failure is None

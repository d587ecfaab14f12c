"""A value from the log has the text that the server itself prints: every type, on each kind of server."""

import math
import random
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncmy
import pytest

from databus_binlog import Position, Rows, Session, connect, float_text
from databus_binlog.charsets import codec_of, single_byte_table
from devstack import Server

ReadRows = Callable[[Position], Awaitable[list[Rows]]]

#: definition of a column, its values as SQL literals, and how to select its text
COLUMNS = [
    ("TINYINT", ["-128", "127", "0", "NULL"], "CONCAT({})"),
    ("TINYINT UNSIGNED", ["255"], "CONCAT({})"),
    ("SMALLINT", ["-32768"], "CONCAT({})"),
    ("SMALLINT UNSIGNED", ["65535"], "CONCAT({})"),
    ("MEDIUMINT", ["-8388608", "-1"], "CONCAT({})"),
    ("MEDIUMINT UNSIGNED", ["16777215"], "CONCAT({})"),
    ("INT", ["-2147483648", "2147483647"], "CONCAT({})"),
    ("INT UNSIGNED", ["4294967295"], "CONCAT({})"),
    ("BIGINT", ["-9223372036854775808", "9223372036854775807"], "CONCAT({})"),
    ("BIGINT UNSIGNED", ["18446744073709551615"], "CONCAT({})"),
    ("FLOAT", ["0.1", "-1.5", "3.25e10", "1e-30", "0"], "CONCAT({})"),
    ("DOUBLE", ["0.1", "-1e20", "1e15", "123456789012345", "1e-5", "2.2250738585072014e-308", "0"], "CONCAT({})"),
    ("DECIMAL(20,5)", ["'-123456789012345.67890'", "'0'", "'-0.00001'", "'7'"], "CONCAT({})"),
    ("DECIMAL(65,30)", ["'-12345678901234567890123456789012345.123456789012345678901234567891'"], "CONCAT({})"),
    ("DECIMAL(2,2)", ["'-0.99'", "'0.5'"], "CONCAT({})"),
    ("BIT(9)", ["b'100000001'", "0"], "CONCAT({} + 0)"),
    ("BIT(64)", ["b'1000000000000000000000000000000000000000000000000000000000000001'"], "CONCAT({} + 0)"),
    ("YEAR", ["2155", "1901", "0"], "CONCAT({})"),
    ("DATE", ["'9999-12-31'", "'0000-00-00'", "'2021-00-00'", "'2024-02-29'"], "CONCAT({})"),
    ("TIME", ["'838:59:59'", "'-838:59:59'", "'00:00:00'"], "CONCAT({})"),
    ("TIME(1)", ["'-00:00:00.1'", "'12:34:56.7'"], "CONCAT({})"),
    ("TIME(3)", ["'-00:00:00.001'", "'-01:00:00.000'"], "CONCAT({})"),
    ("TIME(6)", ["'-838:59:58.999999'", "'00:00:00.000001'"], "CONCAT({})"),
    ("DATETIME", ["'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'", "'2021-00-00 00:00:00'"], "CONCAT({})"),
    ("DATETIME(3)", ["'1000-01-01 00:00:00.001'"], "CONCAT({})"),
    ("DATETIME(6)", ["'2021-02-03 04:05:06.789012'"], "CONCAT({})"),
    ("TIMESTAMP NULL", ["'2038-01-19 03:14:07'", "'1970-01-01 00:00:01'", "'0000-00-00 00:00:00'"], "CONCAT({})"),
    ("TIMESTAMP(2) NULL", ["'2000-02-29 23:59:59.98'", "'0000-00-00 00:00:00'"], "CONCAT({})"),
    ("TIMESTAMP(6) NULL", ["'2024-12-31 23:59:59.999999'"], "CONCAT({})"),
    ("ENUM('a','b','ß')", ["'ß'", "'a'"], "CONCAT({} + 0)"),
    ("SET('a1','a2','a3','a4','a5','a6','a7','a8','a9')", ["'a1,a9'", "''"], "CONCAT({} + 0)"),
    ("CHAR(10) CHARACTER SET latin1", ["'é  '", "''", "_latin1 x'80818d'"], "{}"),
    ("CHAR(100) CHARACTER SET utf8mb4", ["'日本😀'"], "{}"),
    ("VARCHAR(10) CHARACTER SET latin1", ["'é  '"], "{}"),
    ("VARCHAR(300) CHARACTER SET utf8mb3", ["'日本'"], "{}"),
    ("VARCHAR(20) CHARACTER SET gbk", ["'你好abc'"], "{}"),
    ("VARCHAR(20) CHARACTER SET cp1251", ["'Привет'"], "{}"),
    ("VARCHAR(20) CHARACTER SET ucs2", ["'日本'"], "{}"),
    ("VARCHAR(20) CHARACTER SET utf16", ["'😀'"], "{}"),
    ("TEXT CHARACTER SET utf8mb4", ["'texté'", "REPEAT('é', 10000)"], "{}"),
    ("TINYTEXT CHARACTER SET ascii", ["'plain'"], "{}"),
    ("LONGTEXT CHARACTER SET utf8mb4", ["REPEAT('x', 70000)"], "{}"),
    ("BINARY(5)", ["x'0100'", "x''", "x'0102030405'"], "RAW {}"),
    ("VARBINARY(300)", ["x'00ff00'"], "RAW {}"),
    ("TINYBLOB", ["x'00'"], "RAW {}"),
    ("MEDIUMBLOB", ["REPEAT(x'00ff', 40000)"], "RAW {}"),
    ("GEOMETRY", ["ST_GeomFromText('POINT(1 2)', 4326)", "ST_GeomFromText('LINESTRING(0 0,1 1)')"], "RAW {}"),
    ("JSON", ['\'{"b": [1, 2.50, null, true, "q\\\\"é\\\\n"], "aa": {}}\'', "'[]'", "'1e20'", "'\"x\"'"], "{}"),
]

MYSQL_JSON = [
    "JSON_OBJECT('d', CAST('2021-02-03' AS DATE), 't', CAST('-838:59:58.5' AS TIME(6)))",
    "JSON_ARRAY(CAST('2021-02-03 04:05:06.000007' AS DATETIME(6)), 1.50, CAST('-0.001' AS DECIMAL(10,3)))",
    "JSON_ARRAY(x'00ff', b'101', 18446744073709551615, -9223372036854775808, 65536, -32769)",
    "JSON_ARRAY(1e0, 1e-7, 0.1e0, 1e300, 1.2345678901234567e-14, -0e0)",
    "JSON_OBJECT('long', REPEAT('x', 70000), 'n', JSON_ARRAY(1, 70000))",
    "JSON_QUOTE('a\\\\b\\t\\0')",
]


@pytest.fixture
async def queries(source: Server) -> AsyncIterator[Session]:
    async with connect(host=source.host, port=source.port, user=source.user, password=source.password) as session:
        yield session


@pytest.fixture
def read_rows(source: Server, schema: str) -> ReadRows:
    """Read the rows events of the test's schema from a position to the log's end."""

    async def run(position: Position) -> list[Rows]:
        async with connect(host=source.host, port=source.port, user=source.user, password=source.password) as session:
            stream = await session.dump(position, server_id=4711, follow=False, wanted=lambda name, _: name == schema)
            return [event async for events in stream for event in events if isinstance(event, Rows)]

    return run


async def test_every_type_reads_as_the_server_prints_it(source, schema, execute, queries, read_rows):
    json_column = len(COLUMNS) - 1
    await execute("SET sql_mode = '', time_zone = '+00:00'")
    columns = ", ".join(f"c{i} {definition}" for i, (definition, _, _) in enumerate(COLUMNS))
    await execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns}) ROW_FORMAT=DYNAMIC")
    start = await queries.current_position()
    count = 0
    for i, (_, literals, _) in enumerate(COLUMNS):
        for literal in literals + (MYSQL_JSON if i == json_column and source.kind == "mysql" else []):
            count += 1
            await execute(f"INSERT INTO t (id, c{i}) VALUES ({count}, {literal})")

    await queries.query("SET time_zone = '+00:00'")
    texts = ", ".join(
        f"HEX({'' if text.startswith('RAW') else 'CONVERT('}{text.removeprefix('RAW ').format(f'c{i}')}"
        f"{'' if text.startswith('RAW') else ' USING utf8mb4)'})"
        for i, (_, _, text) in enumerate(COLUMNS)
    )
    printed = await queries.query(f"SELECT id, {texts} FROM {schema}.t ORDER BY id")
    read = [image for rows in await read_rows(start) for image in rows.images()]
    assert len(read) == len(printed) == count
    for image, (number, *expected) in zip(read, printed, strict=True):
        found = [None if value is None else value.hex().upper() for value in image[1:]]
        assert {COLUMNS[i][0]: v for i, v in enumerate(found) if v is not None} == {
            COLUMNS[i][0]: v for i, v in enumerate(expected) if v is not None
        }, f"row {number}"


async def printed_doubles(source: Server, sql: str) -> list[bytes]:
    """Select a column as the server prints it, unconverted. MySQL's CONCAT is of no use: it cuts long texts short."""
    raw = await asyncmy.connect(host=source.host, port=source.port, user=source.user, password=source.password, conv={})
    async with raw, raw.cursor() as cursor:
        await cursor.execute(sql)
        return [text.encode() for (text,) in await cursor.fetchall()]


async def test_any_double_has_the_servers_text_and_any_float_survives(source, schema, execute, queries, read_rows):
    rng = random.Random(7)
    doubles = [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(200)]
    doubles += [rng.randint(-(10**16), 10**16) / 10 ** rng.randint(0, 30) for _ in range(300)]
    doubles = [value for value in doubles if math.isfinite(value)]
    await execute("CREATE TABLE d (v DOUBLE, f FLOAT)")
    start = await queries.current_position()
    for at in range(0, len(doubles), 100):
        part = doubles[at : at + 100]
        singles = [value if abs(value) < 1e38 else 0.0 for value in part]
        await execute(
            "INSERT INTO d VALUES " + ", ".join(f"({v!r}, {f!r})" for v, f in zip(part, singles, strict=True))
        )
    printed = await printed_doubles(source, f"SELECT v FROM {schema}.d")
    read = [image for rows in await read_rows(start) for image in rows.images()]
    assert [image[0] for image in read] == printed
    assert [image[0] for image in read] == [float_text(value) for value in doubles]
    for image, value in zip(read, doubles, strict=True):
        single = struct.pack("<f", value if abs(value) < 1e38 else 0.0)
        assert struct.pack("<f", float(image[1])) == single


async def test_updates_and_deletes_show_rows_before_and_after(schema, execute, queries, read_rows):
    await execute("CREATE TABLE u (id INT PRIMARY KEY, name VARCHAR(20), note TEXT)")
    await execute("INSERT INTO u VALUES (1, 'one', NULL), (2, NULL, 'two')")
    start = await queries.current_position()
    await execute("UPDATE u SET name = 'new' ORDER BY id")
    await execute("DELETE FROM u WHERE id = 2")
    update, delete = await read_rows(start)
    assert (update.action, update.count, update.statement_end) == ("update", 4, True)
    assert update.images() == [
        *([b"1", b"one", None], [b"1", b"new", None], [b"2", None, b"two"], [b"2", b"new", b"two"]),
    ]
    assert (delete.action, delete.images()) == ("delete", [[b"2", b"new", b"two"]])
    assert (update.table.schema, update.table.name, update.table.primary_key) == (schema, "u", (0,))
    assert [column.name for column in update.table.columns] == ["id", "name", "note"]
    assert update.table is delete.table


async def test_character_sets_agree_with_the_server(queries):
    known = await queries.query("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
    for (name,) in known:
        table = single_byte_table(name)
        if table is not None:
            codes = ", ".join(f"HEX(CONVERT(_{name} x'{byte:02x}' USING utf8mb4))" for byte in range(256))
            [texts] = await queries.query(f"SELECT {codes}")
            assert [text.hex().upper() for text in table] == list(texts), name
        codec = codec_of(name)
        if codec is None or name.startswith(("ucs", "utf")):
            continue
        for lead in range(0x81, 0xFF, 9):
            pairs = [bytes([lead, trail]) for trail in range(0x40, 0xFF)]
            columns = ", ".join(f"HEX(CONVERT(CONVERT(x'{p.hex()}' USING {name}) USING utf8mb4))" for p in pairs)
            [texts] = await queries.query(f"SELECT {columns}")
            for pair, text in zip(pairs, texts, strict=True):
                if text is not None and b"?" not in (printed := bytes.fromhex(text)):
                    assert pair.decode(codec).encode() == printed, (name, pair)


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_vector_is_its_floats_and_confuses_no_charset(execute, queries, read_rows):
    await execute("CREATE TABLE v (id INT PRIMARY KEY, a VARCHAR(9), v VECTOR(2), b VARCHAR(9) CHARACTER SET latin1)")
    start = await queries.current_position()
    await execute("INSERT INTO v VALUES (1, 'é', STRING_TO_VECTOR('[1,-2.5]'), 'é')")
    (rows,) = await read_rows(start)
    assert rows.images() == [[b"1", "é".encode(), struct.pack("<2f", 1, -2.5), "é".encode()]]
    assert rows.table.columns[2].dimensions == 2

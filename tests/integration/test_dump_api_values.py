"""A value has the same text in a snapshot as from the binlog decoder."""

from collections import defaultdict
from datetime import UTC
from pathlib import Path

import pytest
from pyarrow import parquet

from common.binlog_rows import read_rows
from common.column_types import tables
from common.connections import Execute, printing
from common.dump_output import Folder
from databus_binlog import Position, Value
from databus_changes.catalog import read_table
from databus_changes.snapshot.select import select
from databus_changes.snapshot.views import open_views
from databus_core.events import Row, Table
from databus_core.manifest import FileFormat
from databus_core.settings import Source
from databus_core.source_connection import connect_source
from databus_dump_api.parts import PartWriter
from databus_wire.packed_rows import PackedRows
from devstack import Server as Database
from integration.dump_api import rows_of_json, rows_of_parquet

LABELS = ", ".join(f"'m{number}'" for number in range(64))
#: values of MariaDB and MySQL: column type, SQL value, its text
BOTH: list[tuple[str, str, bytes | None]] = [
    ("TINYINT", "-128", b"-128"),
    ("BIGINT UNSIGNED", "18446744073709551615", b"18446744073709551615"),
    ("INT(8) UNSIGNED ZEROFILL", "42", b"42"),
    ("DECIMAL(65,30)", "-1.5", b"-1." + b"5".ljust(30, b"0")),
    ("DECIMAL(8,2) ZEROFILL", "1.5", b"1.50"),
    ("FLOAT", "1.1", b"1.1"),
    ("FLOAT", "3.4e38", b"3.4e38"),
    ("FLOAT(7,3)", "1.5", b"1.5"),
    ("DOUBLE", "0.1", b"0.1"),
    ("DOUBLE", "1e300", b"1e300"),
    ("DOUBLE", "5e-324", b"5e-324"),
    ("DOUBLE", "123456789012345680000", b"1.2345678901234568e20"),
    ("DOUBLE(10,2) ZEROFILL", "1.25", b"1.25"),
    ("BIT(64)", f"b'{'1' * 64}'", b"18446744073709551615"),
    ("BIT(3)", "b'101'", b"5"),
    ("ENUM('a', 'b')", "'b'", b"2"),
    (f"SET({LABELS})", "18446744073709551615", b"18446744073709551615"),
    ("YEAR", "0", b"0000"),
    ("YEAR", "2155", b"2155"),
    ("DATE", "'2021-00-00'", b"2021-00-00"),
    ("TIME(6)", "'-838:59:58.000001'", b"-838:59:58.000001"),
    ("TIME", "'00:00:01'", b"00:00:01"),
    ("DATETIME(3)", "'0000-00-00 00:00:00'", b"0000-00-00 00:00:00.000"),
    ("TIMESTAMP(2) NULL", "'2021-02-03 04:05:06.78'", b"2021-02-03 02:05:06.78"),
    ("CHAR(5)", "'ab  '", b"ab"),
    ("VARCHAR(10) CHARACTER SET latin1", "'Zoë'", "Zoë".encode()),
    ("VARCHAR(10) CHARACTER SET gbk", "'客户'", "客户".encode()),
    ("VARCHAR(10) CHARACTER SET utf16", "'🦊'", "🦊".encode()),
    ("BINARY(4)", "'ab'", b"ab\0\0"),
    ("VARBINARY(4)", "X'00FF'", b"\0\xff"),
    ("BLOB", "X'FF00'", b"\xff\0"),
    ("POINT", "ST_GeomFromText('POINT(1 2)')", bytes.fromhex("000000000101000000000000000000f03f0000000000000040")),
    ("INT", "NULL", None),
]
#: values of MariaDB only
MARIADB: list[tuple[str, str, bytes | None]] = [
    ("UUID", "'123e4567-e89b-12d3-a456-426655440000'", bytes.fromhex("123e4567e89b12d3a456426655440000")),
    ("INET4", "'1.0.0.0'", b"\1\0\0\0"),
    ("INET6", "'ff00::'", b"\xff" + bytes(15)),
    ("YEAR(2)", "'05'", b"2005"),
    ("JSON", """'{"b":1}'""", b'{"b":1}'),
]
#: values of MySQL only
MYSQL: list[tuple[str, str, bytes | None]] = [
    ("DOUBLE", "'-0'", b"-0"),
    ("JSON", """'{"b": [1, 52.0, "é"], "a": null}'""", '{"a": null, "b": [1, 52.0, "é"]}'.encode()),
]


@pytest.fixture
def settings(source: Database) -> Source:
    return Source.model_validate(
        {"hosts": [f"{source.host}:{source.port}"], "user": source.user, "password": source.password}
    )


async def snapshot(settings: Source, schema: str, name: str) -> tuple[Table, list[Row]]:
    async with connect_source(settings) as session:
        table = await read_table(session, schema, name)
        assert table
        async with open_views(settings, settings.hosts[0]) as [view]:
            return table, [row async for batch in view.batches(select(table)) for row in PackedRows(batch.rows)]


async def position(settings: Source) -> Position:
    async with connect_source(settings) as session:
        return await session.current_position()


# T25: in an ordinary SELECT, the server prints some values differently than the decoder
async def test_t25_snapshot_and_binlog_give_the_same_text(
    source: Database, settings: Source, schema: str, execute: Execute
) -> None:
    cases = BOTH + (MARIADB if source.kind == "mariadb" else MYSQL)
    columns = ", ".join(f"c{number} {kind}" for number, (kind, _, _) in enumerate(cases))
    values = ", ".join(value for _, value, _ in cases)
    await execute("SET sql_mode = '', time_zone = '+02:00'")
    await execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})")
    before = await position(settings)
    await execute(f"INSERT INTO t VALUES (1, {values})")
    _, [dumped] = await snapshot(settings, schema, "t")
    [(_, logged)] = await read_rows(source, before, schema)
    texts = [(kind, text) for (kind, _, _), text in zip(cases, dumped[1:], strict=True)]
    assert texts == [(kind, text) for kind, _, text in cases]
    assert [dumped] == logged.images()


async def test_t25_snapshot_and_binlog_give_the_same_text_for_every_column_type(
    source: Database, settings: Source, schema: str, tmp_path: Path
) -> None:
    before = await position(settings)
    logged: dict[str, list[list[Value]]] = defaultdict(list)
    async with printing(source) as run:
        await run(f"USE {schema}")
        for table in tables(source.kind):
            for statement in (*table.creation, table.insert):
                await run(statement)
    for table_map, rows in await read_rows(source, before, schema):
        logged[table_map.name] += rows.images()
    for table in tables(source.kind):
        definition, dumped = await snapshot(settings, schema, table.name)
        assert len(dumped) == table.rows
        assert dumped == logged[table.name]
        for file_format, read in (FileFormat.JSONL, rows_of_json), (FileFormat.PARQUET, rows_of_parquet):
            parts = PartWriter(Folder(tmp_path), definition, file_format, 2**20)
            parts.write(dumped)
            [file] = parts.close()
            assert read((tmp_path / file.name).read_bytes()) == dumped


GENERATED_COLUMNS = {
    "mariadb": "CREATE TABLE t (a INT PRIMARY KEY, hidden INT INVISIBLE DEFAULT 7, v INT AS (a + 1) VIRTUAL,"
    " s VARCHAR(20) AS (CONCAT('é', a)) PERSISTENT, INDEX (v))",
    "mysql": "CREATE TABLE t (a INT, hidden INT INVISIBLE DEFAULT 7, v INT AS (a + 1) VIRTUAL,"
    " s VARCHAR(20) AS (CONCAT('é', a)) STORED, j JSON AS (JSON_ARRAY(a, v)) VIRTUAL INVISIBLE,"
    " INDEX (v), INDEX ((a * 2)), INDEX ((CAST(j AS UNSIGNED ARRAY))))",
}


# T12: columns that the server generates or adds
async def test_t12_generated_and_hidden_columns_are_the_same_in_snapshot_and_binlog(
    source: Database, settings: Source, schema: str, execute: Execute
) -> None:
    if source.kind == "mysql":
        await execute("SET sql_generate_invisible_primary_key = ON")
    await execute(GENERATED_COLUMNS[source.kind])
    before = await position(settings)
    await execute("INSERT INTO t (a) VALUES (1), (2)")
    table, dumped = await snapshot(settings, schema, "t")
    [(logged, rows)] = await read_rows(source, before, schema)
    names = ["a", "hidden", "v", "s"] if source.kind == "mariadb" else ["my_row_id", "a", "hidden", "v", "s", "j"]
    assert [column.name for column in table.columns] == [column.name for column in logged.columns] == names
    assert dumped == rows.images()
    own = [b"7", b"2", "é1".encode()]
    assert dumped[0] == ([b"1", *own] if source.kind == "mariadb" else [b"1", b"1", *own, b"[1, 2]"])


TYPED = """CREATE TABLE t (
  id BIGINT UNSIGNED PRIMARY KEY, i8 TINYINT, u32 INT UNSIGNED, amount DECIMAL(30,10), f FLOAT, d DOUBLE, y YEAR,
  day DATE, at DATETIME(6), ts TIMESTAMP(3) NULL, name VARCHAR(20), color ENUM('red','grün'), sizes SET('s','m','l'))"""
TYPED_ROWS = """(18446744073709551615, -128, 4294967295, -12345678901234567890.0123456789, 0.1, 1e-300, 1901,
  '1000-01-01', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07.999', 'é', 'grün', 's,l'),
  (0, 127, 0, 0, -1.5, 0, 2155, '2026-02-28', '1000-01-01 00:00:00', '1970-01-01 00:00:01', '', 'red', ''),
  (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""


async def test_typed_parquet_has_the_values_that_the_server_has(
    source: Database, settings: Source, schema: str, execute: Execute, tmp_path: Path
) -> None:
    await execute("SET time_zone = '+00:00'")
    await execute(TYPED)
    await execute(f"INSERT INTO t VALUES {TYPED_ROWS}")
    table, dumped = await snapshot(settings, schema, "t")
    parts = PartWriter(Folder(tmp_path), table, FileFormat.PARQUET_TYPED, 2**20)
    parts.write(dumped)
    [file] = parts.close()
    found = parquet.read_table(tmp_path / file.name)
    async with connect_source(settings) as session:
        await session.query("SET time_zone = '+00:00'")
        # The server rounds the text of a FLOAT, and the client makes a set of a SET.
        exact = {"f": "f + 0e0", "sizes": "CONCAT(sizes)"}
        names = ", ".join(exact.get(name, name) for name in found.column_names)
        rows = await session.query(f"SELECT {names} FROM {schema}.t ORDER BY id")
    zoned = found.column_names.index("ts")
    expected = [
        [value.replace(tzinfo=UTC) if index == zoned and value else value for index, value in enumerate(row)]
        for row in rows
    ]
    assert [list(row.values()) for row in found.to_pylist()] == expected

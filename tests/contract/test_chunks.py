"""Chunks along any key have each row once, in the order of the key, on both kinds of servers."""

import random
from typing import NamedTuple

import msgspec
import pytest

from common.connections import Execute
from databus_binlog.session import Session
from databus_changes.catalog import read_table
from databus_changes.snapshot.chunks import ChunkReader, whole_table
from databus_changes.snapshot.connection import connect_snapshot
from databus_changes.snapshot.keys import chunk_key
from databus_core.events import Row
from databus_core.settings import Source
from devstack import Server


class Key(NamedTuple):
    """A table: its columns, its key, and the values of its `n`-th row."""

    columns: str
    key: str
    values: str
    mariadb_only: bool = False


KEYS = {
    "integer": Key("id INT", "PRIMARY KEY (id)", "{n} - 20"),
    "unsigned": Key("id BIGINT UNSIGNED", "PRIMARY KEY (id)", "18446744073709551615 - {n} * 3"),
    "composite": Key(
        "a INT, b VARCHAR(9), c DATE",
        "PRIMARY KEY (a, b, c)",
        "{n} %% 3, CONCAT('x', {n} %% 5), DATE '2024-02-28' + INTERVAL {n} DAY",
    ),
    "text": Key("t VARCHAR(40)", "PRIMARY KEY (t)", "CONCAT(CHAR(65 + {n} %% 7), IF({n} %% 2, 'é', 'e\\''), {n})"),
    "latin1": Key(
        "t VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_german1_ci",
        "PRIMARY KEY (t)",
        "CONCAT(IF({n} %% 2, 'ä', 'z'), {n})",
    ),
    "char": Key("t CHAR(9)", "PRIMARY KEY (t)", "CONCAT({n}, '!')"),
    "binary": Key("b BINARY(4)", "PRIMARY KEY (b)", "CONCAT(CHAR({n} * 6), CHAR(0))"),
    "varbinary": Key("b VARBINARY(40)", "PRIMARY KEY (b)", "REPEAT(CHAR(255 - {n} %% 4), {n})"),
    "decimal": Key("d DECIMAL(20,6)", "PRIMARY KEY (d)", "{n} / 7 - 3"),
    "double": Key("d DOUBLE", "PRIMARY KEY (d)", "{n} / 7 - 3"),
    "float": Key("f FLOAT", "PRIMARY KEY (f)", "{n} / 7 - 3"),
    "datetime": Key(
        "d DATETIME(6)", "PRIMARY KEY (d)", "TIMESTAMP '2024-02-28 23:59:59.9' + INTERVAL {n} * 77777 MICROSECOND"
    ),
    "timestamp": Key("d TIMESTAMP(3)", "PRIMARY KEY (d)", "TIMESTAMP '2024-03-31 00:00:00' + INTERVAL {n} HOUR"),
    "time": Key("d TIME(2)", "PRIMARY KEY (d)", "SEC_TO_TIME({n} * 1001.25 - 20000)"),
    "year": Key("y YEAR, n INT", "PRIMARY KEY (y, n)", "1990 + {n} %% 30, {n}"),
    "bits": Key("b BIT(9)", "PRIMARY KEY (b)", "{n} * 7"),
    "enum": Key("e ENUM('z','y','x'), n INT", "PRIMARY KEY (e, n)", "1 + {n} %% 3, {n}"),
    "descending": Key("a INT, b INT", "PRIMARY KEY (a DESC, b)", "{n} %% 7, {n}"),
    "unique": Key("a INT NOT NULL, b INT NOT NULL", "UNIQUE u (b, a)", "{n}, {n} %% 4"),
    "uuid": Key("u UUID", "PRIMARY KEY (u)", "UUID()", mariadb_only=True),
    "inet6": Key("i INET6", "PRIMARY KEY (i)", "CONCAT('::', HEX({n} * 77))", mariadb_only=True),
}
ROWS = 40


@pytest.fixture
def settings(source: Server) -> Source:
    return Source(hosts=[address(source)], user=source.user, password=source.password)


def address(source: Server) -> str:
    return f"{source.host}:{source.port}"


async def create(execute: Execute, name: str, key: Key) -> None:
    await execute(f"CREATE TABLE `{name}` ({key.columns}, {key.key})")
    for number in random.Random(16).sample(range(1, ROWS + 1), ROWS):
        await execute(f"INSERT INTO `{name}` VALUES ({key.values.format(n=number)})".replace("%%", "%"))


@pytest.mark.parametrize("name", KEYS)
async def test_chunks_have_each_row_once_in_the_order_of_the_key(
    source: Server, settings: Source, execute: Execute, schema: str, name: str
) -> None:
    key = KEYS[name]
    if key.mariadb_only and source.kind != "mariadb":
        pytest.skip("a type of MariaDB")
    await create(execute, name, key)
    async with connect_snapshot(settings, address(source)) as session:
        rows = await in_chunks(session, schema, name, limit=7)
        assert len(rows) == ROWS
        table = await read_table(session, schema, name)
        assert table
        whole = [row async for batch in whole_table(session, table, "") for row in decoded(batch.rows)]
        assert sorted(rows) == sorted(whole)
        assert rows == await in_chunks(session, schema, name, limit=1)
        assert rows == await in_chunks(session, schema, name, limit=ROWS)


async def test_a_condition_selects_rows_within_chunks(
    source: Server, settings: Source, execute: Execute, schema: str
) -> None:
    await create(execute, "integer", KEYS["integer"])
    async with connect_snapshot(settings, address(source)) as session:
        found = await in_chunks(session, schema, "integer", limit=3, where="id IN (-19, 0, 20) -- three of them")
    assert found == [[b"-19"], [b"0"], [b"20"]]


@pytest.mark.parametrize(
    "columns",
    ["a INT", "a INT NULL, UNIQUE (a)", "a TEXT NOT NULL, PRIMARY KEY (a(9))", "a INT NOT NULL, KEY (a)"],
)
async def test_a_table_without_a_key_of_whole_columns_has_no_chunks(
    source: Server, settings: Source, execute: Execute, schema: str, columns: str
) -> None:
    await execute(f"CREATE TABLE keyless ({columns})")
    async with connect_snapshot(settings, address(source)) as session:
        table = await read_table(session, schema, "keyless")
        assert table
        assert await chunk_key(session, table) is None


async def in_chunks(session: Session, schema: str, name: str, *, limit: int, where: str = "") -> list[Row]:
    table = await read_table(session, schema, name)
    assert table
    key = await chunk_key(session, table)
    assert key
    reader, rows, after = ChunkReader(table, key, where, row_bytes=10), [], None
    while True:
        chunk = await reader.read(session, after, limit)
        rows += [row for batch in chunk.batches for row in decoded(batch.rows)]
        if chunk.is_last:
            return rows
        assert chunk.last_key != after, "the reader must advance"
        after = chunk.last_key


def decoded(rows: bytes) -> list[Row]:
    return msgspec.msgpack.decode(rows, type=list[Row])

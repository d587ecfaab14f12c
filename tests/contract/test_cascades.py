"""Foreign keys on real servers: which rows they change, and whether these are logged."""

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from common.connections import Execute, connected, session_on
from databus_binlog import Position, Rows
from databus_binlog.session import Session
from databus_changes.cascades import logs_cascades, read_cascades
from devstack import Server, Stack

TABLES = [
    "CREATE TABLE p (id INT PRIMARY KEY, k INT UNIQUE)",
    "CREATE TABLE c (id INT PRIMARY KEY, p INT UNIQUE, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE"
    " ON UPDATE CASCADE)",
    "CREATE TABLE g (id INT PRIMARY KEY, c INT, `FOREIGN` INT COMMENT 'it''s\n\\, ', CONSTRAINT `a ``b` FOREIGN KEY (c)"
    " REFERENCES c (id) ON DELETE SET NULL)",
    "CREATE TABLE f (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c (p) ON UPDATE SET NULL)",
    "CREATE TABLE r (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))",
    "INSERT INTO p VALUES (1, 1), (2, 2)",
    "INSERT INTO c VALUES (10, 1), (20, 2)",
    "INSERT INTO g VALUES (100, 10, 0), (200, 20, 0)",
    "INSERT INTO f VALUES (1000, 2)",
]


@pytest.fixture(params=["mariadb", "mysql", "mysql that leaves foreign keys to InnoDB"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    if request.param in {"mariadb", "mysql"}:
        yield request.getfixturevalue(request.param)
        return
    stack = Stack(tmp_path, own=True)
    yield stack.start("mysql", "--innodb-native-foreign-keys=ON")
    stack.discard()


@pytest.fixture
async def reader(source: Server, execute: Execute, schema: str) -> AsyncIterator[Session]:
    """A session with no more than the reader's grants."""
    name = f"u_{secrets.token_hex(4)}"
    await execute(f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'")
    await execute(f"GRANT SELECT ON {schema}.* TO {name}@'%'")
    async with session_on(source, user=name, password="secret") as session:
        yield session
    await execute(f"DROP USER {name}@'%'")


async def test_the_children_whose_rows_change_are_known_and_logged_as_the_server_says(
    source: Server, schema: str, execute: Execute, queries: Session, reader: Session
) -> None:
    async with connected(source) as run:
        await run(f"USE {schema}")
        for statement in TABLES:
            await run(statement)
        found, logged = await read_cascades(reader), await logs_cascades(reader)
        assert found.children().keys() == {(schema, name) for name in "cgf"}
        for statement, children in (
            ("UPDATE p SET id = 3 WHERE id = 2", found.updated((schema, "p"))),
            ("UPDATE p SET k = 3 WHERE id = 3", frozenset()),
            ("DELETE FROM p WHERE id = 1", found.deleted((schema, "p"))),
        ):
            start, before = await queries.current_position(), await contents(queries, schema)
            await run(statement)
            after = await contents(queries, schema)
            changed = {(schema, name) for name in "cgfr" if before[name] != after[name]}
            assert changed == children
            assert await tables_in_log(source, start, schema) == {(schema, "p")} | (changed if logged else set())


async def contents(queries: Session, schema: str) -> dict[str, list[tuple[object, ...]]]:
    return {name: await queries.query(f"SELECT * FROM {schema}.{name} ORDER BY id") for name in "pcgfr"}


async def tables_in_log(source: Server, start: Position, schema: str) -> set[tuple[str, str]]:
    """Return the tables of which rows are logged after a position."""
    async with session_on(source) as session:
        server_id = 2**31 + secrets.randbelow(10**6)
        stream = await session.dump(start, server_id=server_id, follow=False, wanted=lambda name, _: name == schema)
        maps = [events.tables[event.table] async for events in stream for event in events if isinstance(event, Rows)]
        return {(table_map.schema, table_map.name) for table_map in maps}

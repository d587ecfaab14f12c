"""`apply`: tables of another SQL database stay equal to those of the source."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncmy
import pytest
from sqlalchemy import Engine, MetaData, Table, create_engine, event, inspect, select
from sqlalchemy.exc import NoSuchTableError, OperationalError, ProgrammingError

from common.connections import Execute
from common.pipelines import MakePipeline
from common.waiting import cancelled, eventually
from databus import Databus, apply
from devstack import Server
from devstack.pipeline import Pipeline

ITEMS = """
    CREATE TABLE items (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(50), price DECIMAL(9,2), at DATETIME(6), j JSON)
"""
BEGIN = """
    INSERT INTO items VALUES (18446744073709551615, 'é', 1.5, '2026-11-27 10:00:00.5', NULL), (2, NULL, 2, NULL, NULL)
"""


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute) -> Pipeline:
    await execute(ITEMS)
    await execute("CREATE TABLE pairs (a INT, b VARCHAR(20), n INT, PRIMARY KEY (a, b))")
    await execute("CREATE TABLE vacant (id INT PRIMARY KEY)")
    pipeline = make_pipeline(source, schema)
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    return pipeline


@pytest.fixture(params=[("mariadb", "sqlite"), ("mysql", "sqlite"), ("mariadb", "postgresql")], ids="-".join)
def databases(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The kinds of the source and of the replica."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def source(request: pytest.FixtureRequest, databases: tuple[str, str]) -> Server:
    return request.getfixturevalue(databases[0])


@pytest.fixture
def engine(request: pytest.FixtureRequest, databases: tuple[str, str], tmp_path: Path) -> Iterator[Engine]:
    if databases[1] == "postgresql":
        engine = create_engine(request.getfixturevalue("replica_url"))
    else:
        engine = create_engine(f"sqlite:///{tmp_path}/replica.db")
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA journal_mode = WAL"))
    yield engine
    engine.dispose()


@asynccontextmanager
async def applying(pipeline: Pipeline, engine: Engine, schema: str) -> AsyncIterator[None]:
    async with Databus(pipeline.url("dump-api")) as databus:
        task = asyncio.create_task(apply(engine, databus.changes(f"{schema}.*")))
        try:
            yield
        finally:
            await cancelled(task)
            if not task.cancelled():
                task.result()  # raises what ended it


async def rows_of(source: Server, schema: str, table: str) -> list[tuple[Any, ...]]:
    account = {"host": source.host, "port": source.port, "user": source.user, "password": source.password}
    async with await asyncmy.connect(**account, db=schema) as connection, connection.cursor() as cursor:
        await cursor.execute(f"SELECT * FROM {table}")
        return list(await cursor.fetchall())


def copy_of(engine: Engine, table: str) -> list[tuple[Any, ...]] | None:
    if not inspect(engine).has_table(table):
        return None
    try:
        found = Table(table, MetaData(), autoload_with=engine)
        with engine.begin() as connection:
            return [tuple(row) for row in connection.execute(select(found))]
    except (NoSuchTableError, OperationalError, ProgrammingError):  # it is being replaced
        return None


def texts_of(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in rows)


Equal = Callable[..., Awaitable[None]]


@pytest.fixture
def equal(source: Server, schema: str, engine: Engine) -> Equal:
    """Wait until tables have the rows of the source."""

    async def wait(*tables: str) -> None:
        for table in tables:
            expected = texts_of(await rows_of(source, schema, table))

            async def is_equal(table: str = table, expected: list[Any] = expected) -> bool:
                found = await asyncio.to_thread(copy_of, engine, table)
                return found is not None and texts_of(found) == expected

            await eventually(is_equal)

    return wait


async def test_random_changes(pipeline: Pipeline, engine: Engine, schema: str, execute: Execute, equal: Equal) -> None:
    chosen = random.Random(7)
    await execute(BEGIN)
    await execute("INSERT INTO pairs VALUES (1, 'x', 1), (2, 'y', 2)")
    for _ in range(3):  # the second and third time it continues
        async with applying(pipeline, engine, schema):
            for _ in range(40):
                number = chosen.randrange(10)
                await execute("REPLACE INTO items (id, name, price) VALUES (%s, %s, 1)", number, str(chosen.random()))
                await execute(
                    "UPDATE IGNORE items SET id = id + 100, price = price + 1 WHERE id = %s", chosen.randrange(10)
                )
                await execute("DELETE FROM items WHERE id > 105 AND id < 1000")
                await execute("INSERT INTO pairs VALUES (%s, 'z', 1) ON DUPLICATE KEY UPDATE n = n + 1", number)
            await equal("items", "pairs", "vacant")


async def test_statements(pipeline: Pipeline, engine: Engine, schema: str, execute: Execute, equal: Equal) -> None:
    await execute("INSERT INTO items (id, name) VALUES (1, 'one'), (2, 'two')")
    async with applying(pipeline, engine, schema):
        await equal("items")
        await execute("ALTER TABLE items ADD stock INT NOT NULL DEFAULT 7 FIRST, DROP j")
        await execute("UPDATE items SET name = 'uno' WHERE id = 1")
        await execute("INSERT INTO items (id, name, stock) VALUES (3, 'three', 3)")
        await execute("ALTER TABLE items ADD INDEX (name)")
        await execute("CREATE TABLE more (id INT PRIMARY KEY)")
        await execute("INSERT INTO more VALUES (1), (2)")
        await execute("TRUNCATE TABLE pairs")
        await execute("DROP TABLE vacant")
        await execute("RENAME TABLE more TO other")
        await execute("INSERT INTO other VALUES (3)")
        await execute("CREATE TABLE keyless (v INT)")
        await execute("INSERT INTO keyless VALUES (3)")
        await execute("INSERT INTO pairs VALUES (5, 'x', 1)")
        await equal("items", "other", "pairs")
        assert set(inspect(engine).get_table_names()) == {
            "items",
            "other",
            "pairs",
            "databus_bookmarks",
            "databus_loads",
        }

"""`apply`: tables of another SQL database stay equal to those of the source."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncmy
import pytest
from sqlalchemy import Engine, MetaData, Table, create_engine, event, inspect, select
from sqlalchemy.exc import NoSuchTableError, OperationalError, ProgrammingError

from common.connections import Execute
from common.pipelines import MakePipeline
from common.waiting import cancelled, eventually
from databus import Databus, InvalidSettings, apply
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


def between(*databases: tuple[str, str]) -> pytest.MarkDecorator:
    """Run a test with these kinds of the source and of the replica."""
    return pytest.mark.parametrize("databases", databases, indirect=True, ids="-".join)


@pytest.fixture
def databases(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The kinds of the source and of the replica."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def source(request: pytest.FixtureRequest, databases: tuple[str, str]) -> Server:
    return request.getfixturevalue(databases[0])


@pytest.fixture
def engine(request: pytest.FixtureRequest, databases: tuple[str, str]) -> Iterator[Engine]:
    engine = create_engine(request.getfixturevalue(f"{databases[1]}_replica_url"))
    if databases[1] == "sqlite":
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


@between(("mariadb", "sqlite"), ("mysql", "mariadb"), ("mariadb", "postgresql"))
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


@between(("mariadb", "sqlite"), ("mysql", "sqlite"), ("mariadb", "postgresql"))
@pytest.mark.mysql_in_slow
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


class DiedError(Exception):
    pass


class Deaths:
    """Ends `apply` at points in the statements of an engine, each once, as if the process were killed."""

    def __init__(self, engine: Engine, *points: tuple[str, str]) -> None:
        """Each point is behind a statement, before the next one that names a table."""
        self.points = list(points)
        self._passed: tuple[str, str] | None = None
        event.listen(engine, "before_cursor_execute", self._before)

    def _before(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        text = " ".join(statement.split()).replace("`", "")
        if self._passed and self._passed[1] in text:
            self.points.remove(self._passed)
            self._passed = None
            raise DiedError
        self._passed = self._passed or next((point for point in self.points if text.startswith(point[0])), None)


@between(("mariadb", "mysql"))
async def test_a_death_between_a_statement_and_the_bookmark(
    pipeline: Pipeline, engine: Engine, schema: str, execute: Execute, equal: Equal
) -> None:
    """MySQL has committed the statement then, without the bookmark."""
    await execute(BEGIN)
    await execute("INSERT INTO pairs VALUES (1, 'x', 1), (2, 'y', 2)")
    async with applying(pipeline, engine, schema):
        await equal("items", "pairs", "vacant")
    for statement in (
        "CREATE TABLE more (id INT PRIMARY KEY, n INT)",
        "INSERT INTO more VALUES (1, 1), (2, 2)",
        "UPDATE more SET id = id + 10 WHERE id = 1",
        "DROP TABLE vacant",
        "TRUNCATE TABLE pairs",
        "INSERT INTO pairs VALUES (2, 'y', 3)",
        "ALTER TABLE items ADD stock INT NOT NULL DEFAULT 7 FIRST, DROP j",
        "UPDATE items SET name = 'uno' WHERE id = 2",
        "INSERT INTO more VALUES (3, 3)",
    ):
        await execute(statement)
    deaths = Deaths(
        engine,
        ("CREATE TABLE more", "databus_bookmarks"),
        ("DROP TABLE vacant", "databus_bookmarks"),
        ("DELETE FROM pairs", "databus_bookmarks"),
        ("CREATE TABLE items", "databus_loads"),
        ("CREATE TABLE items", "INSERT INTO databus_bookmarks"),
    )
    async with Databus(pipeline.url("dump-api")) as databus:
        while deaths.points:
            with pytest.raises(DiedError):
                await apply(engine, databus.changes(f"{schema}.*"))
    async with applying(pipeline, engine, schema):
        await equal("items", "more", "pairs")
    assert not inspect(engine).has_table("vacant")


@between(("mariadb", "mariadb"))
async def test_the_tables_of_the_source_are_not_replaced(
    pipeline: Pipeline, engine: Engine, schema: str, execute: Execute, source: Server
) -> None:
    await execute(BEGIN)
    with pytest.raises(InvalidSettings, match=rf"{schema}\.\w+ is the source's own table"):
        async with Databus(pipeline.url("dump-api")) as databus, asyncio.timeout(60):
            await apply(engine, databus.changes(f"{schema}.*"), schema=schema)
    assert len(await rows_of(source, schema, "items")) == 2

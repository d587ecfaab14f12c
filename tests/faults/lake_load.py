"""The load of the lake's storm: connections that change rows and tables at random."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import asyncmy
from asyncmy.errors import MySQLError

from devstack import Server
from faults.lake_columns import Column
from faults.lake_statements import alter_table, change_tables, create_table, row_statements

_TABLES = tuple(f"t{number}" for number in range(7))
#: names to which tables are renamed
_SPARE = ("s0", "s1")
#: its row is the last one of a round: when the lake has it, it has everything
FENCE = "fence"
#: a table with rows that are too large for its topic, which become dead letters
LARGE = "large"
#: all names that tables may have
NAMES = (*_TABLES, *_SPARE, *(f"{name}_old" for name in (*_TABLES, *_SPARE)), LARGE, FENCE)
_LARGE_BYTES = 3_000_000
_LOGIN: dict[str, Any] = {"autocommit": True, "charset": "utf8mb4"}
_SESSION = "SET time_zone = '+00:00', lock_wait_timeout = 5, innodb_lock_wait_timeout = 3"


@dataclass
class Report:
    """What has happened."""

    transactions: int = 0
    row_statements: int = 0
    #: the first words of statements on tables that were executed → how often
    ddl: Counter[str] = field(default_factory=Counter)
    #: code and text of the database's error → how often
    refused: Counter[str] = field(default_factory=Counter)
    #: what was done to the pipeline → how often
    faults: Counter[str] = field(default_factory=Counter)
    tables: int = 0
    rows: int = 0
    failures: list[str] = field(default_factory=list)


class Load:
    """Changes the tables of one schema. `server` may be replaced between the statements of one load and of the next."""

    def __init__(self, server: Server, schema: str, report: Report) -> None:
        self.server = server
        self.schema = schema
        self._report = report

    async def create_tables(self, random: Random) -> None:
        """Create the schema and its tables, with some rows."""
        connection = await self.connect("")
        async with connection:
            for text in (f"CREATE DATABASE {self.schema} CHARACTER SET utf8mb4", f"USE {self.schema}"):
                await execute(connection, text)
            for table in _TABLES:
                await execute(connection, create_table(random, table))
            await execute(connection, f"CREATE TABLE {FENCE} (id int PRIMARY KEY)")
            await execute(connection, f"CREATE TABLE {LARGE} (id int PRIMARY KEY, body longtext)")
        await self.change_rows(random, 100)

    async def drop_tables(self) -> None:
        """Drop the schema."""
        connection = await self.connect("")
        async with connection:
            await execute(connection, f"DROP DATABASE {self.schema}")

    async def fence(self, number: int) -> None:
        """Write the last row of a round."""
        connection = await self.connect()
        async with connection:
            await execute(connection, f"INSERT INTO {FENCE} VALUES ({number})")

    async def write_large_row(self, number: int) -> None:
        """Write a row that is too large for its topic, and one that is not."""
        connection = await self.connect()
        async with connection:
            await execute(connection, f"INSERT INTO {LARGE} VALUES ({number}, REPEAT('x', {_LARGE_BYTES}))")
            await execute(connection, f"INSERT INTO {LARGE} VALUES (-{number}, 'small')")

    async def present(self) -> set[str]:
        """Return the names of the tables that there are."""
        connection = await self.connect()
        async with connection:
            return {name for (name,) in await execute(connection, "SHOW TABLES")}

    async def change_rows(self, random: Random, transactions: int, pause: float = 0) -> None:
        """Run transactions that change rows."""
        connection = await self.connect()
        async with connection:
            for _ in range(transactions):
                await execute(connection, "BEGIN")
                for _ in range(random.choice([1, 1, 2, 3, 6])):
                    await self._change_some(connection, random)
                await execute(connection, "ROLLBACK" if random.random() < 0.05 else "COMMIT")
                self._report.transactions += 1
                await asyncio.sleep(pause * random.random() * 2)

    async def change_tables(self, random: Random, statements: int, seconds: float) -> None:
        """Run statements on tables, spread over a time."""
        connection = await self.connect()
        async with connection:
            for _ in range(statements):
                await asyncio.sleep(random.random() * 2 * seconds / statements)
                rows = await execute(connection, "SHOW TABLES")
                present = sorted({name for (name,) in rows} - {FENCE, LARGE})
                for table in sorted(set(_TABLES) - set(present)):
                    await self._change(connection, create_table(random, table))
                table = random.choice(present)
                if random.random() < 0.65:
                    texts = alter_table(random, table, await self._columns(connection, table))
                else:
                    free = [name for name in _SPARE if name not in present]
                    for name in _SPARE if not free else ():
                        await self._change(connection, f"DROP TABLE {name}")
                    texts = change_tables(random, sorted({*present} & {*_TABLES}), free or _SPARE, self.server.kind)
                for text in texts:
                    await self._change(connection, text)

    async def connect(self, schema: str | None = None) -> Any:
        """Open a connection, by default to the schema."""
        server = self.server
        login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        connection = await asyncmy.connect(**login, **_LOGIN, database=self.schema if schema is None else schema)
        await execute(connection, _SESSION)
        return connection

    async def _change_some(self, connection: Any, random: Random) -> None:
        table = random.choice(_TABLES if random.random() < 0.9 else sorted({*NAMES} - {FENCE, LARGE}))
        if not (columns := await self._columns(connection, table)):
            return
        for text in row_statements(random, table, columns):
            self._report.row_statements += await self._try(connection, text)

    async def _change(self, connection: Any, text: str) -> None:
        if await self._try(connection, text):
            self._report.ddl[" ".join(text.split()[:2])] += 1
        await execute(connection, "COMMIT")

    async def _try(self, connection: Any, text: str) -> bool:
        """Execute a statement, which the database may refuse, as other connections change tables, too."""
        try:
            await execute(connection, text)
        except MySQLError as error:
            self._report.refused[f"{text.split(maxsplit=1)[0]}: {error.args[0]}"] += 1
            if error.args[0] in (1064, 1054 if text.startswith("ALTER") else 1064):
                self._report.failures.append(f"{text}: {error}")
            return False
        return True

    async def _columns(self, connection: Any, table: str) -> list[Column]:
        rows = await execute(
            connection,
            "SELECT column_name, column_type, data_type, is_nullable, column_key, character_maximum_length, "
            "datetime_precision FROM information_schema.columns "
            f"WHERE table_schema = '{self.schema}' AND table_name = '{table}' ORDER BY ordinal_position",
        )
        return [
            Column(name, _text(kind), _text(data), nullable == "YES", _text(key), int(length or 0), int(precision or 0))
            for name, kind, data, nullable, key, length, precision in rows
        ]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


async def execute(connection: Any, text: str) -> Sequence[tuple[Any, ...]]:
    """Execute a statement and return its rows."""
    async with connection.cursor() as cursor:
        await cursor.execute(text)
        rows: Sequence[tuple[Any, ...]] = await cursor.fetchall()
        return rows

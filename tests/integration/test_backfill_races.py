"""Rows change while a backfill reads them: consumers that store the last row for each key are right at the end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from common.connections import Execute, connected
from common.pipelines import Consume, MakePipeline
from common.waiting import eventually
from devstack import Server
from devstack.pipeline import Pipeline
from devstack.replication import run
from integration.loading import Copy, command, rows_of

#: table → its key columns, and the values of them in row n
KEYS: dict[str, tuple[str, Callable[[int], tuple[str, ...]]]] = {
    "int": ("k INT PRIMARY KEY", lambda n: (str(n - 3),)),
    "unsigned": ("k BIGINT UNSIGNED PRIMARY KEY", lambda n: (str(2**64 - 1 - n),)),
    "composite": ("a INT, k VARCHAR(9), PRIMARY KEY (a, k)", lambda n: (str(n // 3), f"'k{n}'")),
    "collated": ("k VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY", lambda n: (f"'k{n}'",)),
    "latin": ("k CHAR(9) CHARACTER SET latin1 PRIMARY KEY", lambda n: (f"'ä{n}'",)),
    "bin": ("k BINARY(4) PRIMARY KEY", lambda n: (f"X'{n:06x}00'",)),
    "dec": ("k DECIMAL(9,3) PRIMARY KEY", lambda n: (f"-{n}.5",)),
    "time": ("k DATETIME(3) PRIMARY KEY", lambda n: (f"'2026-01-01 00:00:{n:02}.5'",)),
    "stamp": ("k TIMESTAMP(6) NOT NULL DEFAULT '2026-01-01' PRIMARY KEY", lambda n: (f"'2026-01-01 00:00:{n:02}.25'",)),
    "enums": ("k ENUM({}) PRIMARY KEY".format(",".join(f"'e{n}'" for n in range(64))), lambda n: (f"'e{n}'",)),
    "doubles": ("k DOUBLE PRIMARY KEY", lambda n: (f"{n}.5",)),
    "floats": ("k FLOAT PRIMARY KEY", lambda n: (f"{n}.5",)),
    "unique": ("k INT NOT NULL, UNIQUE (k)", lambda n: (str(n),)),
    "years": ("k YEAR PRIMARY KEY", lambda n: (str(1990 + n),)),
}  # fmt: skip
_ROWS = 6


def changes_of(table: str, row: Callable[[int], tuple[str, ...]]) -> list[str]:
    """Return statements that change a table of rows 0 … 5 in every way, also the keys of rows."""

    def where(number: int) -> str:
        return f"WHERE k = {row(number)[-1]}"

    return [
        f"UPDATE `{table}` SET v = 'new' {where(0)}",
        f"DELETE FROM `{table}` {where(1)}",
        f"UPDATE `{table}` SET k = {row(31)[-1]} {where(2)}",
        f"DELETE FROM `{table}` {where(3)}",
        f"INSERT INTO `{table}` VALUES ({', '.join(row(3))}, 'again')",
        f"INSERT INTO `{table}` VALUES ({', '.join(row(32))}, 'inserted')",
    ]


@asynccontextmanager
async def held(server: Server, schema: str) -> AsyncIterator[tuple[str, Callable[[], Awaitable[int]]]]:
    """Yield a condition for a backfill whose SELECTs end after the block, and a function that counts those that run."""
    sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE %s AND id <> CONNECTION_ID()"

    async def running() -> int:
        ((count,),) = await run(server, (sql, f"SELECT%FORCE INDEX%GET_LOCK(CONCAT('{schema}'%"))
        return int(count)

    async with connected(server) as execute:
        await execute("DO GET_LOCK(%s, 0)", schema)
        # It depends on the row: MySQL evaluates a constant condition before it reads, and when the request is checked.
        lock = f"CONCAT('{schema}', LEFT(v, 0))"
        yield f"GET_LOCK({lock}, 60) = RELEASE_LOCK({lock})", running


@pytest.fixture
async def begun(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute) -> Pipeline:
    pipeline = make_pipeline(source, schema, backfill={"connections": len(KEYS)})
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    return pipeline


async def test_rows_that_change_while_they_are_read(
    begun: Pipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    """All statements run after the read views were opened, and before the SELECTs have ended."""
    copies = []
    for table, (key, row) in KEYS.items():
        await execute(f"CREATE TABLE `{table}` ({key}, v VARCHAR(9))")
        values = ", ".join(f"({', '.join(row(number))}, 'old')" for number in range(_ROWS))
        await execute(f"INSERT INTO `{table}` VALUES {values}")
        copies.append(Copy(await changes(f"{begun.name}.{schema}.{table}"), range(len(row(0)))))
    async with held(source, schema) as (condition, running):
        loading = asyncio.create_task(command(begun, "start", f"{schema}.*", "--where", condition, "--wait"))

        async def all_are_read() -> bool:
            return await running() == len(KEYS)

        await eventually(all_are_read)
        for table, (_, row) in KEYS.items():
            for statement in changes_of(table, row):
                await execute(statement)
        await execute("UPDATE collated SET k = 'K4' WHERE k = 'k4'")
        assert await all_are_read()
    assert await loading == 0
    for table, copy in zip(KEYS, copies, strict=True):
        columns = "k + 0, v" if table == "enums" else "*"  # messages have the numbers of an ENUM
        await copy.equals(rows_of(source, f"{schema}.`{table}`", columns))

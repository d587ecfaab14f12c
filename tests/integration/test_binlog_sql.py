"""`databus binlog --output flashback` and `sql`: executed by the servers, they restore and repeat random changes."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from common.connections import Print, printing, session_on
from databus_cli.__main__ import main
from devstack import Server
from integration.random_changes import Target, targets, transactions

Run = Callable[..., Awaitable[tuple[int, list[str], str]]]
Binlog = Callable[..., Awaitable[list[str]]]


@pytest.fixture
def run(source: Server, schema: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run `databus binlog` on the server's log; return its exit code, its output as lines, and its standard error."""
    (tmp_path / "password").write_text(source.password)
    login = ("--server", f"{source.host}:{source.port}", "--user", source.user)
    login += ("--password-file", str(tmp_path / "password"), "--tables", f"{schema}.*")

    async def command(*arguments: str) -> tuple[int, list[str], str]:
        capfdbinary.readouterr()
        code = await asyncio.to_thread(main, ["binlog", *login, "--quiet", *arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode().splitlines(), err.decode()

    return command


@pytest.fixture
def binlog(run: Run) -> Binlog:
    """Run `databus binlog` without a failure; return its output as lines."""

    async def succeed(*arguments: str) -> list[str]:
        code, lines, err = await run(*arguments)
        assert (code, err) == (0, "")
        return lines

    return succeed


async def position(source: Server) -> str:
    async with session_on(source) as session:
        end = await session.current_position()
    return f"{end.file}:{end.offset}"


async def execute(statement: Print, lines: list[str]) -> None:
    for line in lines:
        if not line.startswith("--"):
            await statement(line.removesuffix(";"))


async def content(statement: Print, tables: list[Target]) -> dict[str, Counter[tuple[bytes | None, ...]]]:
    return {table.name: Counter(map(tuple, await statement(table.select))) for table in tables}


@pytest.mark.parametrize("changes", [300, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_flashback_restores_the_tables_and_sql_repeats_the_changes(
    source: Server, schema: str, binlog: Binlog, changes: int
) -> None:
    tables, random, copy = targets(source.kind), Random(changes), f"{schema}_{secrets.token_hex(2)}"
    async with printing(source) as statement:
        for name in (copy, schema):
            await statement(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4")
            await statement(f"USE {name}")
            for table in tables:
                await statement(table.creation)
        first = await position(source)
        for transaction in transactions(tables, random, 200):
            await execute(statement, transaction)
        before, start = await content(statement, tables), await position(source)
        for transaction in transactions(tables, random, changes):
            await execute(statement, transaction)
        after = await content(statement, tables)
        assert all(after[name] and after[name] != before[name] for name in after)

        again = await binlog("--output", "sql", "--from", first)
        undo = await binlog("--output", "flashback", "--from", start)
    async with printing(source) as statement:
        await execute(statement, [line.replace(schema, copy) for line in again])
        await statement(f"USE {copy}")
        assert await content(statement, tables) == after
        await execute(statement, undo)
        await statement(f"USE {schema}")
        assert await content(statement, tables) == before
        await statement(f"DROP DATABASE {copy}")


async def test_rows_that_a_collation_or_the_server_would_confuse(source: Server, schema: str, binlog: Binlog) -> None:
    """Rows without a key that differ in case, spaces or sign of zero, a key of 0, and an XA transaction."""
    async with printing(source) as statement:
        await statement(f"USE {schema}")
        await statement("CREATE TABLE texts (s VARCHAR(9), d DOUBLE)")
        await statement("CREATE TABLE zero (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(9))")
        for text in ("'a', 0", "'A', 0", "'a ', 0", "'ä', 0", "'a', '-0'"):
            await statement(f"INSERT INTO texts VALUES ({text})")
        before, start = await statement("SELECT s, d FROM texts"), await position(source)
        await statement("DELETE FROM texts WHERE BINARY s = 'A' OR CAST(d AS CHAR) = '-0'")
        await statement("UPDATE texts SET s = 'A ' WHERE BINARY s = 'a '")
        await statement("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        await statement("INSERT INTO zero VALUES (0, 'null')")
        for part in ("START 'x'", "END 'x'", "PREPARE 'x'", "COMMIT 'x'"):
            await statement(f"XA {part}")
            if part.startswith("START"):
                await statement("INSERT INTO zero VALUES (5, 'xa')")
        after = await statement("SELECT s, d FROM texts"), await statement("SELECT * FROM zero")
        again = await binlog("--output", "sql", "--from", start)
        undo = await binlog("--output", "flashback", "--from", start)
        await execute(statement, undo)
        assert sorted(await statement("SELECT s, d FROM texts")) == sorted(before)
        assert await statement("SELECT * FROM zero") == []
        await execute(statement, again)
        assert sorted(await statement("SELECT s, d FROM texts")) == sorted(after[0])
        assert await statement("SELECT * FROM zero") == after[1] == [[b"0", b"null"], [b"5", b"xa"]]


@pytest.mark.parametrize(
    ("image", "change", "reason"),
    [
        ("NOBLOB", "UPDATE t SET n = 2", ""),
        ("NOBLOB", "UPDATE t SET b = 'y'", "lacks the old b (binlog_row_image)"),
        ("NOBLOB", "DELETE FROM t", "lacks column b (binlog_row_image)"),
        ("MINIMAL", "UPDATE t SET n = 2", "lack columns (id, n, b)"),
    ],
)
async def test_partial_row_images_are_undone_if_nothing_is_missing(
    source: Server, schema: str, run: Run, image: str, change: str, reason: str
) -> None:
    async with printing(source) as statement:
        await statement(f"USE {schema}")
        await statement("CREATE TABLE t (id INT PRIMARY KEY, n INT, b TEXT)")
        await statement("INSERT INTO t VALUES (1, 1, 'x')")
        await statement(f"SET SESSION binlog_row_image = '{image}'")
        start = await position(source)
        await statement(change)
        code, undo, err = await run("--output", "flashback", "--from", start)
        assert reason in err
        assert (code, bool(undo)) == ((1, False) if reason else (0, True))
        await execute(statement, undo)
        assert reason or await statement("SELECT * FROM t") == [[b"1", b"1", b"x"]]

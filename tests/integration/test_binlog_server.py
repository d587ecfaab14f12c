"""`databus binlog` reads a server as a replica does, and takes the names of columns from its information_schema."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from common.binlog_rows import until
from common.connections import Execute, connected, session_on
from databus_binlog import EventStream, Position
from databus_cli.__main__ import main
from devstack import Server

Run = Callable[..., Awaitable[tuple[int, str, list[str]]]]


@pytest.fixture
def login(source: Server, tmp_path: Path) -> list[str]:
    (tmp_path / "password").write_text(source.password)
    address = f"{source.host}:{source.port}"
    return ["--server", address, "--user", source.user, "--password-file", str(tmp_path / "password")]


@pytest.fixture
def run(schema: str, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run the command for the test's schema; return its exit code, its output and its lines on standard error."""

    async def binlog(*arguments: str) -> tuple[int, str, list[str]]:
        capfdbinary.readouterr()
        code = await asyncio.to_thread(main, ["binlog", *arguments, "--quiet", "--tables", f"{schema}.*"])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode().splitlines()

    return binlog


async def end(source: Server) -> Position:
    async with session_on(source) as session:
        return await session.current_position()


@pytest.fixture
async def unnamed(source: Server) -> AsyncIterator[None]:
    """The binlog does not name columns."""
    async with connected(source) as execute:
        await execute(f"SET GLOBAL binlog_row_metadata = '{'NO_LOG' if source.kind == 'mariadb' else 'MINIMAL'}'")
        yield
        await execute("SET GLOBAL binlog_row_metadata = 'FULL'")


@pytest.fixture
async def rows(source: Server, execute: Execute) -> Position:
    """Three changes of a table, each in a transaction of its own; returns the position before them."""
    columns = "id INT UNSIGNED PRIMARY KEY, e ENUM('small','large'), b VARBINARY(9), twice BIGINT AS (id * 2)"
    await execute(f"CREATE TABLE t ({columns})")
    start = await end(source)
    await execute("INSERT INTO t (id, e, b) VALUES (4000000000, 'large', x'00ff')")
    await execute("UPDATE t SET e = 'small'")
    await execute("DELETE FROM t")
    return start


async def test_names_and_labels_that_are_not_logged_come_from_the_server(
    source: Server, schema: str, unnamed: None, rows: Position, run: Run, login: list[str]
) -> None:
    position = f"{rows.file}:{rows.offset}"
    code, out, notices = await run(*login, "--from", position)
    assert (code, notices) == (0, [])
    inserted, updated, deleted = map(json.loads, out.splitlines())
    row = {"id": "4000000000", "e": "2", "b": {"base64": "AP8="}, "twice": "8000000000"}
    assert inserted["row"] == row
    assert deleted["row"] == updated["after"] == row | {"e": "1"}
    _, out, _ = await run(
        *login, "--from", position, "--output", "pretty", "--where", "e = 'large'", "--action", "update"
    )
    assert "    ~ e = 'large' → 'small'\n" in out
    _, out, _ = await run(*login, "--from", position, "--output", "flashback", "--action", "insert")
    assert f"DELETE FROM `{schema}`.`t` WHERE `id` = 4000000000;\n" in out
    _, out, _ = await run(*login, "--from", position, "--output", "sql", "--action", "insert")
    assert f"INSERT INTO `{schema}`.`t` (`id`, `e`, `b`) VALUES (4000000000, 2, x'00ff');\n" in out
    _, out, _ = await run(*login, "--from", position, "--format", "maxwell-json")
    assert json.loads(out.splitlines()[0])["value"]["data"]["e"] == "large"


async def test_names_for_local_files_come_from_a_server(
    source: Server, schema: str, unnamed: None, rows: Position, run: Run, login: list[str]
) -> None:
    async with session_on(source) as session:
        [(base,)] = await session.query("SELECT @@GLOBAL.log_bin_basename")
    file, offset = str(Path(base).with_name(rows.file)), str(rows.offset)
    _, out, _ = await run(file, "--from", offset, "--schema-server", *login[1:])
    assert json.loads(out.splitlines()[0])["row"]["id"] == "4000000000"
    _, out, _ = await run(file, "--from", offset)
    assert json.loads(out.splitlines()[0])["row"]["@1"] in {"4000000000", "-294967296"}


async def test_rows_before_ddl_have_no_names_of_the_table_as_it_is_now(
    source: Server, execute: Execute, unnamed: None, run: Run, login: list[str]
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start = await end(source)
    for statement in ("INSERT INTO t VALUES (1)", "ALTER TABLE t ADD COLUMN c INT", "INSERT INTO t VALUES (2, 3)"):
        await execute(statement)
    _, out, _ = await run(*login, "--from", f"{start.file}:{start.offset}")
    first, _, second = map(json.loads, out.splitlines())
    assert (first["row"], second["row"]) == ({"@1": "1"}, {"id": "2", "c": "3"})


async def test_the_server_finds_the_file_by_time_and_by_gtid(
    source: Server, rows: Position, run: Run, login: list[str]
) -> None:
    async with connected(source) as statement:
        await statement("FLUSH BINARY LOGS")
    code, by_time, _ = await run(*login, "--since", "2020-01-01T00:00:00Z")
    lines = [json.loads(line) for line in by_time.splitlines() if '"type":"query"' not in line]
    assert (code, [line["type"] for line in lines]) == (0, ["insert", "update", "delete"])
    assert {line["file"] for line in lines} == {rows.file}
    if source.kind == "mysql":
        assert all(line["thread_id"] for line in lines)
    _, by_gtid, _ = await run(*login, "--from", lines[1]["gtid"], "--to", lines[1]["gtid"])
    assert [json.loads(line)["type"] for line in by_gtid.splitlines()] == ["update"]
    code, by_file, _ = await run(rows.file, *login)
    assert (code, by_file.splitlines()[-1]) == (0, by_time.splitlines()[-1])
    assert (await run(*login, "--since", "2999-01-01T00:00:00Z"))[:2] == (0, "")


async def test_following_prints_each_change_and_does_not_end_the_reader(
    source: Server, schema: str, execute: Execute, login: list[str]
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    async with session_on(source) as session:
        reader = await session.dump(await session.current_position(), server_id=2**31 + 77)
        assert isinstance(reader, EventStream)
        command = [
            sys.executable,
            "-m",
            "databus_cli",
            "binlog",
            *login,
            "--follow",
            "--tables",
            f"{schema}.*",
            "--quiet",
        ]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout
        numbers = []
        async with asyncio.timeout(30):
            line = asyncio.create_task(process.stdout.readline())
            while not line.done():  # the first rows may precede the command's start
                numbers.append(len(numbers) + 1)
                await execute(f"INSERT INTO t VALUES ({numbers[-1]})")
                await asyncio.wait([line], timeout=0.2)
            first = int(json.loads(await line)["row"]["id"])
            for number in range(first + 1, len(numbers) + 1):
                assert json.loads(await process.stdout.readline())["row"]["id"] == str(number)
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130
        await execute("INSERT INTO t VALUES (1000)")
        await until(reader, b"1000")


async def test_the_source_of_a_pipeline_is_read(
    source: Server, schema: str, rows: Position, run: Run, tmp_path: Path, login: list[str]
) -> None:
    settings: dict[str, Any] = {"hosts": [login[1]], "user": source.user, "password": source.password}
    (tmp_path / "databus.yaml").write_text(json.dumps({"name": "shop", "source": settings}))
    arguments = ("--config", str(tmp_path / "databus.yaml"), "--from", f"{rows.file}:{rows.offset}")
    code, out, _ = await run(*arguments)
    assert (code, len(out.splitlines())) == (0, 3)
    code, _, [notice] = await run(*arguments, "--user", "me")
    assert (code, notice) == (2, "databus: --config has the account: remove --user and --password-file, or --config")


async def test_what_is_wrong_with_the_server_is_one_line(run: Run, login: list[str], tmp_path: Path) -> None:
    code, _, [notice] = await run("mysql-bin.999999", *login)
    assert code == 1
    assert notice.startswith("databus: the server has no file mysql-bin.999999 (its log is ")
    (tmp_path / "password").write_text("wrong")
    code, _, [notice] = await run("mysql-bin.999999", *login)
    assert code == 1
    assert "denied" in notice.lower()

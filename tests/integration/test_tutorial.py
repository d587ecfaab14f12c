"""The code of the tutorial and of the README runs, and has the results that they show."""

import asyncio
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from common.connections import Execute
from common.pipelines import MakePipeline
from common.waiting import eventually
from devstack import Server
from devstack.pipeline import Pipeline

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "docs/tutorial/first-replica.md").read_text()
README = (ROOT / "README.md").read_text()

pytestmark = pytest.mark.parametrize("source", ["mariadb"], indirect=True)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
async def shop(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute) -> Pipeline:
    """The shop of compose.yaml, in a schema of the test's own, with a running pipeline."""
    content = yaml.safe_load((ROOT / "compose.yaml").read_text())["configs"]["shop"]["content"]
    for statement in content.split(";"):
        if statement.split()[:1] in (["CREATE"], ["INSERT"]) and "DATABASE" not in statement:
            await execute(statement)
    pipeline = make_pipeline(source, schema)
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    return pipeline


@asynccontextmanager
async def running(code: str, shop: Pipeline, schema: str, folder: Path) -> AsyncIterator[Process]:
    """Run a program of the text, with the addresses and the schema of the test."""
    code = re.sub(r"http://[\w.-]+:8080", shop.url("dump-api"), code).replace('"shop.', f'"{schema}.')
    program = code.replace("localhost:9094", shop.kafka.url)
    process = await asyncio.create_subprocess_exec(sys.executable, "-uc", program, cwd=folder, stdout=PIPE)
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


async def printed(code: str, folder: Path) -> str:
    """Run a program to its end, and return what it prints, also if it fails."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=folder, stdout=PIPE, stderr=PIPE)
    return (await process.communicate())[0].decode()


async def test_the_tutorial(shop: Pipeline, schema: str, execute: Execute, tmp_path: Path) -> None:
    replica, look, watch = blocks(TUTORIAL, "python")
    copied, watched = blocks(TUTORIAL, "text")
    (statements,) = blocks(TUTORIAL, "sql")

    async def looks_as_shown() -> bool:
        return await printed(look, tmp_path) == copied

    async with running(replica, shop, schema, tmp_path):
        await eventually(lambda: asyncio.to_thread((tmp_path / "shop.db").exists))
        for statement in statements.strip().split("\n"):
            await execute(statement)
        await eventually(looks_as_shown)
    async with running(watch, shop, schema, tmp_path) as watching, asyncio.timeout(60):
        assert watching.stdout
        lines = [await watching.stdout.readline() for _ in watched.splitlines()]
    assert b"".join(lines).decode() == watched


async def test_the_readme(shop: Pipeline, schema: str, execute: Execute, tmp_path: Path) -> None:
    (replica,) = blocks(README, "python")
    assert len([line for line in replica.splitlines() if line]) <= 10
    look = 'import sqlite3; print(*sqlite3.connect("replica.db").execute("SELECT name FROM customers ORDER BY id"))'

    async def has(names: str) -> bool:
        return (await printed(look, tmp_path)).strip() == names

    async with running(replica, shop, schema, tmp_path):
        await eventually(lambda: has("('Ada',) ('Grace',) ('Zoë',)"))
        await execute("UPDATE customers SET name = 'Hopper' WHERE id = 2")
        await eventually(lambda: has("('Ada',) ('Hopper',) ('Zoë',)"))

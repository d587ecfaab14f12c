"""Each error that `--check` finds is reported in one line that names its cause, with an exit code and no traceback."""

import asyncio
import json
import secrets
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from common.connections import Execute, connected
from common.pipelines import MakePipeline
from devstack import Server
from devstack.pipeline import Pipeline


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, source: Server) -> Pipeline:
    return make_pipeline(source, "shop")


def configure(pipeline: Pipeline, section: str, **values: Any) -> None:
    config = json.loads(pipeline.config.read_text())
    config[section] |= values
    pipeline.config.write_text(json.dumps(config))


async def check(pipeline: Pipeline, service: str) -> tuple[int, str]:
    """Run `--check` and return exit code and output."""
    program = Path(sys.executable).parent / f"databus-{service}"
    process = await asyncio.create_subprocess_exec(
        program,
        "--config",
        pipeline.config,
        "--check",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert "Traceback" not in output.decode()
    assert process.returncode is not None
    return process.returncode, output.decode().strip()


@pytest.mark.parametrize("service", ["reader", "publisher"])
async def test_a_good_configuration_is_ready(pipeline: Pipeline, service: str) -> None:
    assert await check(pipeline, service) == (0, f"databus-{service}: ready")


async def test_a_wrong_password_is_named(pipeline: Pipeline, source: Server) -> None:
    configure(pipeline, "source", password_file=None, password="wrong")
    code, output = await check(pipeline, "reader")
    assert code == 78
    assert len(output.splitlines()) == 1
    assert source.user in output
    assert "source.password" in output


@pytest.fixture
async def account(source: Server) -> AsyncIterator[str]:
    """An account without any privilege."""
    name = f"u_{secrets.token_hex(4)}"
    async with connected(source) as execute:
        await execute(f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'")
        yield name
        await execute(f"DROP USER {name}@'%'")


async def test_a_missing_grant_is_named(pipeline: Pipeline, account: str) -> None:
    configure(pipeline, "source", user=account, password_file=None, password="secret")
    code, output = await check(pipeline, "reader")
    assert code == 78
    assert len(output.splitlines()) == 1
    assert "REPLICATION SLAVE" in output


@pytest.fixture
async def poor_log(source: Server) -> AsyncIterator[Execute]:
    """A server that may log statements and partial rows; its settings are restored afterwards."""
    async with connected(source) as execute:
        await execute("SET GLOBAL binlog_format = 'MIXED'")
        await execute("SET GLOBAL binlog_row_image = 'MINIMAL'")
        yield execute
        await execute("SET GLOBAL binlog_format = 'ROW'")
        await execute("SET GLOBAL binlog_row_image = 'FULL'")


@pytest.mark.usefixtures("poor_log")
async def test_every_wrong_setting_of_the_server_is_named(pipeline: Pipeline) -> None:
    code, output = await check(pipeline, "reader")
    assert code == 78
    said = output.splitlines()
    assert len(said) == 2
    assert "set binlog_format=ROW" in said[0]
    assert "set binlog_row_image=FULL" in said[1]


@pytest.mark.parametrize(
    ("service", "section", "values", "setting"),
    [
        ("reader", "redis", {"url": "redis://127.0.0.1:1/0"}, "redis.url"),
        ("publisher", "redis", {"url": "redis://127.0.0.1:1/0"}, "redis.url"),
        ("publisher", "kafka", {"bootstrap_servers": ["127.0.0.1:1"]}, "kafka.bootstrap_servers"),
        ("reader", "source", {"hosts": ["127.0.0.1:1"]}, "127.0.0.1:1"),
    ],
)
async def test_a_dependency_that_is_not_running_is_named(
    make_pipeline: MakePipeline, mariadb: Server, service: str, section: str, values: dict[str, Any], setting: str
) -> None:
    pipeline = make_pipeline(mariadb, "shop")
    configure(pipeline, section, **values)
    code, output = await check(pipeline, service)
    assert code == 75
    assert len(output.splitlines()) == 1
    assert setting in output


async def test_an_unknown_key_is_named(make_pipeline: MakePipeline, mariadb: Server) -> None:
    pipeline = make_pipeline(mariadb, "shop")
    configure(pipeline, "kafka", brokers=["x:1"])
    code, output = await check(pipeline, "publisher")
    assert code == 78
    assert "kafka.brokers" in output

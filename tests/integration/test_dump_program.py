"""The program databus-dump-api: `--check`, and errors in its configuration."""

import json
from pathlib import Path
from typing import Any

import pytest

from common.pipelines import MakePipeline, RunService
from devstack import Server

pytestmark = pytest.mark.mysql_in_slow


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize(
    ("overrides", "code", "setting"),
    [
        ({"source": {"password": "wrong", "password_file": None}}, 78, "source.password"),
        ({"redis": {"url": "redis://127.0.0.1:1/0"}}, 75, "redis.url"),
        ({"redis": {"url": "localhost:6379"}}, 78, "redis.url"),
        ({"kafka": {"bootstrap_servers": ["127.0.0.1:1"]}}, 75, "kafka.bootstrap_servers"),
        ({"dumps": {"storage": "file:///proc/dumps"}}, 78, "dumps.storage"),
    ],
)
async def test_check_names_the_setting_that_is_wrong(
    make_pipeline: MakePipeline, source: Server, schema: str, run_service: RunService, overrides: dict[str, Any],
    code: int, setting: str,
) -> None:  # fmt: skip
    config = make_pipeline(source, schema).config
    configure(config, overrides)
    found, output = await run_service("dump-api", config, "--check")
    assert found == code, output
    assert setting in output.splitlines()[-1]
    assert "Traceback" not in output


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_check_reports_that_the_service_is_ready(
    make_pipeline: MakePipeline, source: Server, schema: str, run_service: RunService
) -> None:
    code, output = await run_service("dump-api", make_pipeline(source, schema).config, "--check")
    assert (code, output.splitlines()[-1]) == (0, "databus-dump-api: ready")


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_an_invalid_redis_url_is_reported_in_one_line(
    make_pipeline: MakePipeline, source: Server, schema: str, run_service: RunService
) -> None:
    config = make_pipeline(source, schema).config
    configure(config, {"redis": {"url": "localhost:6379"}})
    code, output = await run_service("dump-api", config)
    assert code == 78
    [line] = output.splitlines()
    assert "redis.url" in line


def configure(config: Path, overrides: dict[str, Any]) -> None:
    settings = json.loads(config.read_text())
    for section, values in overrides.items():
        settings[section] |= values
    config.write_text(json.dumps(settings))

"""The commands and programs of docs/tutorial/first-lake.md do what the page says, after those of first-pipeline.md."""

import json
from pathlib import Path

import pytest

from common.service_logs import unexpected
from common.spark import FEW_ROWS
from devstack import Server, Stack
from devstack.process import ENVIRONMENT
from integration.first_pipeline import first_pipeline
from integration.tutorial import steps


@pytest.mark.lake
async def test_the_tutorial(own: Stack, redis_server: Server, kafka: Server, jars: Path, tmp_path: Path) -> None:
    _install, _start, *pipeline = steps("first-pipeline", until="Clean up")
    _install, *lake = steps("first-lake")
    java = {"JDK_JAVA_OPTIONS": ENVIRONMENT["JDK_JAVA_OPTIONS"], "DATABUS__SPARK__CONF": json.dumps(FEW_ROWS)}
    async with first_pipeline(own, redis_server, kafka, tmp_path, {"$PWD/jars": str(jars)}, **java) as terminal:
        await terminal.follow(pipeline)
        await terminal.follow(lake)
    log = terminal.folder / "spark-sink.log"
    assert " stopped: " in log.read_text().splitlines()[-1]
    assert unexpected(log) == []

"""The commands of docs/tutorial/first-pipeline.md do what the page says, in their order, from its third step on.

The first two steps install the programs, and start Redis and Kafka: here they are installed, and run already.
The README's configuration of such a pipeline is valid.
"""

import re
from pathlib import Path

import pytest

from common.compose_file import compose_file
from common.service_logs import unexpected
from databus_core.settings import load
from devstack import Server, Stack
from integration.first_pipeline import first_pipeline
from integration.tutorial import steps

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
async def test_the_tutorial(own: Stack, redis_server: Server, kafka: Server, tmp_path: Path) -> None:
    _install, _start, *page = steps("first-pipeline")
    async with first_pipeline(own, redis_server, kafka, tmp_path) as terminal:
        await terminal.follow(page)
    for service in ("reader", "publisher", "dump-api"):
        log = terminal.folder / f"{service}.log"
        assert " stopped: " in log.read_text().splitlines()[-1]
        assert unexpected(log) == []


def test_redis_and_kafka_are_those_of_compose() -> None:
    _install, start, *_ = steps("first-pipeline")
    compose = compose_file()["services"]
    images = re.findall(r"127\.0\.0\.1:\d+:\d+ (\S+)", start.code)
    assert images == [compose["redis"]["image"], compose["kafka"]["image"]]
    options = start.code.split("redis-server ")[1].split("\n")[0].replace('""', "").split(" ")
    assert ["redis-server", *options] == compose["redis"]["command"]


def test_the_configuration_of_the_readme_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("databus-password").write_text("secret")
    Path("databus.yaml").write_text(text)
    settings = load(Path("databus.yaml"))
    assert (settings.name, settings.source.hosts, settings.source.include) == ("shop", ["db1:3306"], ["shop.*"])

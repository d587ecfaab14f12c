"""What services log while a dependency is away, when they are fenced or stop, and what they never log."""

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from common.connections import Execute
from common.fork_server import ForkServer
from common.pipelines import Changes, Consume
from common.service_logs import lines, unexpected
from common.waiting import eventually, throughout
from databus_core import names
from databus_core.kafka_stop import stop_producer
from databus_core.log_events import LogEvent
from devstack import Server, Stack
from devstack.pipeline import Pipeline, Service
from faults.proxy import Proxy

SERVICES: tuple[Service, ...] = ("publisher", "reader", "dump-api")
#: which services use a dependency all the time
USERS: dict[str, tuple[Service, ...]] = {
    "source": ("reader", "dump-api"),
    "redis": SERVICES,
    "kafka": ("publisher", "dump-api"),
}


@dataclass
class Rig:
    """A pipeline whose dependencies are behind proxies."""

    pipeline: Pipeline
    proxies: dict[str, Proxy]
    changes: Changes

    def logged(self, service: Service, *events: LogEvent) -> list[dict[str, Any]]:
        return [line for line in lines(self.pipeline.log(service)) if line["event"] in events]

    async def ready(self, service: Service) -> bool:
        return (await asyncio.to_thread(self.pipeline.get, service, "/readyz")).is_success

    async def freshness(self, stage: Service) -> float:
        """Return the seconds since the moment whose changes have all passed a stage."""
        text = (await asyncio.to_thread(self.pipeline.get, stage, "/metrics")).text
        (value,) = re.findall(rf'^databus_freshness_seconds{{.*stage="{stage}"}} (.+)$', text, re.MULTILINE)
        return float(value)

    async def is_fresh(self) -> bool:
        """Return whether everything is in Kafka but what happened in the last seconds: heartbeats come each second."""
        return max(await self.freshness("reader"), await self.freshness("publisher")) < _FRESH_SECONDS

    async def until_tried(self, service: Service, dependency: str, times: int) -> None:
        """Wait until a service has failed to reach a dependency this many times; then the service must not be ready."""

        async def tried() -> bool:
            tries = self.logged(service, LogEvent.DEPENDENCY_LOST, LogEvent.DEPENDENCY_RETRIED)
            return sum(line["dependency"] == dependency for line in tries) >= times

        await eventually(tried, seconds=120)
        assert not await self.ready(service)


@pytest.fixture
def source(mariadb: Server) -> Server:
    return mariadb


@pytest.fixture
def kafka(own: Stack) -> Server:
    return own.start("kafka")


@pytest.fixture
async def rig(
    tmp_path: Path,
    own: Stack,
    source: Server,
    redis_server: Server,
    kafka: Server,
    schema: str,
    execute: Execute,
    changes: Consume,
    fork_server: ForkServer,
) -> AsyncIterator[Rig]:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, text LONGTEXT)")
    *_, behind, front = own.ports("kafka")
    proxies = {"source": Proxy(source.port), "redis": Proxy(redis_server.port), "kafka": Proxy(behind, front)}
    for proxy in proxies.values():
        await proxy.start()

    def through(server: Server, name: str) -> Server:
        port = proxies[name].port
        return replace(server, port=port, url=server.url.replace(str(server.port), str(port)))

    name = f"p{secrets.token_hex(4)}"
    pipeline = Pipeline(
        tmp_path / name,
        source=through(source, "source"),
        redis=through(redis_server, "redis"),
        kafka=through(kafka, "kafka"),
        name=name,
        include=(f"{schema}.*",),
        overrides={
            "log": {"format": "json", "level": "debug"},
            "reader": {"server_id": secrets.randbelow(2**31) + 1000},
        },
        launch=fork_server.spawn,
    )
    await asyncio.to_thread(pipeline.start_all, *SERVICES)
    yield Rig(pipeline, proxies, await changes(f"{name}.{schema}.t"))
    for service in SERVICES:
        await asyncio.to_thread(pipeline.kill, service)
    for proxy in proxies.values():
        await proxy.stop()


async def lose(rig: Rig, execute: Execute, dependency: str, tries: int) -> float:
    """Cut a dependency off between two rows, and wait until its users have tried to reach it.

    Return when the second row was written.
    """
    await execute("INSERT INTO t VALUES (1, 'a')")
    await rig.changes.until(1)
    await rig.proxies[dependency].stop()
    await execute("INSERT INTO t VALUES (2, 'b')")  # an idle publisher does not notice that Kafka is away
    written = time.time()
    for service in USERS[dependency]:
        await rig.until_tried(service, dependency, times=tries)
    return written


#: more than passes between two heartbeats, on a busy machine
_FRESH_SECONDS = 3.0
DEPENDENCIES = [pytest.param(each, marks=[pytest.mark.slow] if each == "kafka" else []) for each in USERS]


@pytest.mark.parametrize("dependency", DEPENDENCIES)
async def test_an_outage_is_logged_when_it_begins_and_when_it_ends_and_the_freshness_is_true_all_the_time(
    rig: Rig, execute: Execute, dependency: str
) -> None:
    await eventually(rig.is_fresh)
    written = await lose(rig, execute, dependency, tries=3)
    age = time.time() - written
    assert age <= await rig.freshness("publisher") < age + _FRESH_SECONDS
    assert (await rig.freshness("reader") < _FRESH_SECONDS) is (dependency == "kafka")
    await rig.proxies[dependency].start()
    await rig.changes.until(1)
    await eventually(rig.is_fresh)
    await throughout(2, rig.is_fresh)
    for service in SERVICES:
        await asyncio.to_thread(rig.pipeline.wait, service)
        lost, back = rig.logged(service, LogEvent.DEPENDENCY_LOST), rig.logged(service, LogEvent.DEPENDENCY_BACK)
        expected = [dependency] if service in USERS[dependency] else []
        assert [line["dependency"] for line in lost] == [line["dependency"] for line in back] == expected
        assert all(line["seconds"] > 0.5 for line in back)
        await asyncio.to_thread(rig.pipeline.stop, service)
        assert unexpected(rig.pipeline.log(service)) == []


@pytest.mark.parametrize("dependency", DEPENDENCIES)
async def test_a_service_that_is_stopped_while_a_dependency_is_away_ends_without_unexpected_errors(
    rig: Rig, execute: Execute, dependency: str
) -> None:
    await lose(rig, execute, dependency, tries=1)
    for service in SERVICES:
        await asyncio.to_thread(rig.pipeline.stop, service)
        assert lines(rig.pipeline.log(service))[-1]["event"] == LogEvent.STOPPED
        assert unexpected(rig.pipeline.log(service)) == []


@pytest.mark.parametrize("rows", [1, 5], ids=["at its commit", "while it sends"])
async def test_a_fenced_publisher_ends_with_one_error(rig: Rig, execute: Execute, rows: int) -> None:
    await execute("INSERT INTO t VALUES (1, 'a')")
    await rig.changes.until(1)
    identity = names.transactional_id(rig.pipeline.name)
    successor = AIOKafkaProducer(bootstrap_servers=rig.pipeline.kafka.url, transactional_id=identity)
    await successor.start()
    try:
        await execute("BEGIN")
        for number in range(rows):
            await execute("INSERT INTO t VALUES (%s, REPEAT('x', 700000))", number + 2)
        await execute("COMMIT")
        await asyncio.to_thread(rig.pipeline.wait_ended, "publisher", 60)
    finally:
        await stop_producer(successor, 5)
    assert len(rig.logged("publisher", LogEvent.FAILED)) == 1
    assert unexpected(rig.pipeline.log("publisher")) == []


async def test_no_line_has_a_rows_value_or_the_password(rig: Rig, execute: Execute) -> None:
    value, password = f"value-{secrets.token_hex(8)}", rig.pipeline.source.password
    await execute("INSERT INTO t VALUES (1, 'a')")
    # The first of these rows is too large for Kafka.
    await execute(f"INSERT INTO t VALUES (2, REPEAT('{value} ', 100000)), (3, '{value}')")
    await execute("INSERT INTO t VALUES (4, 'd')")
    await rig.changes.until(3)
    for service in SERVICES:
        await asyncio.to_thread(rig.pipeline.stop, service)
        text = rig.pipeline.log(service).read_text()
        assert value not in text
        assert password not in text
        for line in lines(rig.pipeline.log(service)):
            assert line["event"] in list(LogEvent)
            assert (line["service"], line["pipeline"]) == (service, rig.pipeline.name)
            assert line["message"]
    (letter,) = rig.logged("publisher", LogEvent.DEAD_LETTER)
    assert letter["generation"] in [line["generation"] for line in rig.logged("publisher", LogEvent.GENERATION_OPENED)]
    assert letter["topic"] == f"{rig.pipeline.name}.{letter['table']}"
    assert letter["position"].startswith("binlog.")
    assert letter["gtid"]

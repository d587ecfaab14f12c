"""A pipeline with a lake, whose alerts a Prometheus evaluates thirty times faster than in production."""

import asyncio
import re
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import yaml

from common.fork_server import ForkServer
from common.waiting import eventually
from devstack import Server, Stack
from devstack.pipeline import Pipeline, Service
from faults.prometheus import Alerts, configured
from faults.proxy import Proxy
from reference import metrics as reference

#: a fault may show only when the reader looks at the server and at Redis, which it does every minute
PATIENCE = 300
SERVICES: tuple[Service, ...] = ("reader", "publisher", "dump-api", "spark-sink")
_SPEED = 30
_UNITS = {"m": 60, "h": 3600}
#: thresholds that are ages, and what they become
_AGES = {"> 120": "> 4", "> 1800": "> 30", "> 3600": "> 90"}


@dataclass
class Watched:
    """The pipeline, its servers, and its Prometheus."""

    pipeline: Pipeline
    source: Server
    redis: Server
    kafka: Server
    proxies: dict[str, Proxy]
    alerts: Alerts
    schema: str

    async def until_firing(self, *alerts: str) -> None:
        async def all_fire() -> bool:
            return set(alerts) <= await self.alerts.firing()

        await eventually(all_fire, seconds=PATIENCE)

    async def until_cleared(self, *alerts: str) -> None:
        async def none_fires() -> bool:
            return not set(alerts) & await self.alerts.firing()

        await eventually(none_fires, seconds=PATIENCE)

    async def start(self, *services: Service) -> None:
        await asyncio.to_thread(self.pipeline.start_all, *services)

    async def command(self, program: str, *arguments: str) -> None:
        """Run a command of the command line or of the sink, with the pipeline's configuration."""
        path = Path(sys.executable).parent / program
        process = await asyncio.create_subprocess_exec(path, *arguments, "--config", self.pipeline.config)
        assert await process.wait() == 0


@asynccontextmanager
async def watched(
    home: Path, own: Stack, other_host: Server, fork_server: ForkServer, storage: Path, jars: Path
) -> AsyncIterator[Watched]:
    """Start the servers and Prometheus, but no service."""
    source, redis, kafka = (own.start(kind) for kind in ("mariadb", "redis", "kafka"))
    *_, behind, front = own.ports("kafka")
    proxies = {"source": Proxy(source.port), "kafka": Proxy(behind, front)}
    for proxy in proxies.values():
        await proxy.start()
    name = f"p{secrets.token_hex(4)}"
    pipeline = Pipeline(
        home,
        source=replace(source, port=proxies["source"].port),
        redis=redis,
        kafka=replace(kafka, port=front, url=kafka.url.replace(str(kafka.port), str(front))),
        name=name,
        include=(f"{name}.*",),
        overrides=_settings(proxies["source"].port, other_host, storage, jars),
        launch=fork_server.spawn,
    )
    rules = lapsed(reference.ALERTS.read_text())
    prometheus = own.start("prometheus", configured(home, map(pipeline.url, SERVICES), rules, every=1))
    async with httpx.AsyncClient(base_url=prometheus.url) as client:
        yield Watched(pipeline, source, redis, kafka, proxies, Alerts(client), name)
    for service in SERVICES:
        await asyncio.to_thread(pipeline.kill, service)
    for proxy in proxies.values():
        await proxy.stop()


def _settings(port: int, other_host: Server, storage: Path, jars: Path) -> dict[str, Any]:
    return {
        "source": {"hosts": [f"127.0.0.1:{port}", f"{other_host.host}:{other_host.port}"]},
        "log": {"format": "json"},
        "reader": {"server_id": secrets.randbelow(2**31) + 1000, "backlog_limit": "1MiB", "election": {"renew": "1s"}},
        "publisher": {"election": {"renew": "1s"}},
        "doubt": {"heal": "manual"},
        "dumps": {
            "storage": f"file://{storage}",
            "rows_per_second": 20_000,
            "schedules": [{"name": "nightly", "cron": "0 3 29 2 *"}],
        },
        "spark": {"jars": str(jars), "trigger": "1s", "heal": "manual", "verify": "20s"},
    }


def lapsed(rules: str) -> str:
    """Return rules with all durations, and the ages of data, divided by about `_SPEED`."""

    def seconds(match: re.Match[str]) -> str:
        return f"{match[1]}{int(match[2]) * _UNITS[match[3]] // _SPEED}s"

    text = re.sub(r"(for: |\[|offset )(\d+)([mh])\b", seconds, rules)
    for before, after in _AGES.items():
        text = re.sub(rf"{before}$", after, text, flags=re.MULTILINE)
    assert yaml.safe_load(text)
    return text

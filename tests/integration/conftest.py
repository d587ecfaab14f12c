"""Pairs of databases that replicate, of one test's own; a publisher in this process."""

import asyncio
import json
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from redis.asyncio import Redis

from databus.cli.__main__ import main
from databus.pipe import ReaderEnd
from databus.settings import Settings
from devstack import Server
from devstack.replication import Pair
from devstack.replication import run as run_statements
from hosts_support import CREATE_ACCOUNT
from publisher_support import Publisher, Run, Source


@pytest.fixture(params=["mariadb", "mysql"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    """Each kind of database in turn, with a table shop.t that holds one row."""
    pair = Pair(tmp_path / "pair", request.param)
    await pair.start()
    await run_statements(
        pair.primary,
        *CREATE_ACCOUNT,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        "INSERT INTO shop.t VALUES (1)",
    )
    await pair.caught_up()
    yield pair
    await pair.discard()
    shutil.rmtree(tmp_path / "pair")  # pytest would keep hundreds of megabytes for a while


@pytest.fixture
def configured(kafka: Server, redis_server: Server, tmp_path: Path) -> Callable[..., Settings]:
    name = f"p{secrets.token_hex(4)}"

    def make(**publisher: Any) -> Settings:
        values = {
            "name": name,
            "redis": {"url": redis_server.url},
            "kafka": {"bootstrap_servers": [kafka.url]},
            "publisher": {"claim_checks": f"file://{tmp_path}/claims"} | publisher,
        }
        (tmp_path / "databus.yaml").write_text(json.dumps(values))
        return Settings(**values)

    return make


@pytest.fixture
async def run(redis_server: Server) -> AsyncIterator[Run]:
    started: list[Publisher] = []
    async with Redis.from_url(redis_server.url) as redis:

        async def start(settings: Settings) -> tuple[Publisher, Source]:
            publisher = Publisher(settings)
            started.append(publisher)
            source = Source(ReaderEnd(redis, settings.name))
            await source.claim()
            return publisher, source

        yield start
        for publisher in started:
            await publisher.stop()


@pytest.fixture
async def admin(kafka: Server) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await client.start()
    yield client
    await client.close()


@pytest.fixture
def dead_letters(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Awaitable[Any]]:
    async def command(*arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        capfdbinary.readouterr()
        code = await asyncio.to_thread(main, ["deadletter", *arguments, "--config", str(tmp_path / "databus.yaml")])
        out, err = capfdbinary.readouterr()
        return code, [json.loads(line) for line in out.splitlines()] if "--json" in arguments else [], err.decode()

    return command

"""Each client names the server that answers in place of its own kind, and the setting to check."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from databus_core import kafka_client, kafka_errors
from databus_core.errors import InvalidSettings, SourceNotReady
from databus_core.kafka_client import admin
from databus_core.redis_connection import connect_redis
from databus_core.settings import Settings
from databus_core.source_connection import connect_source
from databus_core.wrong_server import wrong_server
from devstack import Server


@pytest.fixture
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's clients wait no longer than this test needs: other servers leave their requests without an answer."""
    monkeypatch.setattr(kafka_client, "_START_SECONDS", 0.2)
    monkeypatch.setattr(kafka_errors, "_PROBE_SECONDS", 0.2)


@pytest.fixture
async def http_server() -> AsyncIterator[str]:
    """The address of a server that refuses each line as no HTTP request."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"


@pytest.fixture
def addresses(mariadb: Server, mysql: Server, redis_server: Server, kafka: Server, http_server: str) -> dict[str, str]:
    servers = {"mariadb": mariadb, "mysql": mysql, "redis": redis_server, "kafka": kafka}
    return {name: f"{server.host}:{server.port}" for name, server in servers.items()} | {"http": http_server}


async def kafka_client_of(address: str) -> None:
    async with admin(Settings(name="shop", kafka={"bootstrap_servers": [address]}).kafka):
        raise AssertionError


async def redis_client_of(address: str) -> None:
    async with connect_redis(Settings(name="shop", redis={"url": f"redis://{address}"}).redis):
        raise AssertionError


async def database_client_of(address: str) -> None:
    async with connect_source(Settings(name="shop", source={"hosts": [address], "connect_timeout": 0.2}).source):
        raise AssertionError


IS = {
    "mariadb": "is MySQL or MariaDB",
    "mysql": "is MySQL or MariaDB",
    "redis": "is Redis",
    "kafka": "is Kafka",
    "http": "is an HTTP server",
}


@pytest.mark.usefixtures("short_timeouts")
@pytest.mark.parametrize(
    ("client", "own", "expected"),
    [
        (kafka_client_of, ["kafka"], "Kafka (check kafka.bootstrap_servers)"),
        (redis_client_of, ["redis"], "Redis (check redis.url)"),
        (database_client_of, ["mariadb", "mysql"], "MySQL or MariaDB (check source.hosts)"),
    ],
)
async def test_the_error_names_the_server_that_answers(
    addresses: dict[str, str], client: Callable[[str], Awaitable[None]], own: list[str], expected: str
) -> None:
    for name in addresses.keys() - set(own):
        with pytest.raises((InvalidSettings, SourceNotReady)) as caught:
            await client(addresses[name])
        assert str(caught.value).removeprefix("database ") == f"{addresses[name]} {IS[name]}, not {expected}"


async def test_a_server_of_the_expected_kind_or_none_is_not_wrong(addresses: dict[str, str]) -> None:
    expected = {name: words.removeprefix("is ") for name, words in IS.items()}
    for name, address in addresses.items():
        host, _, port = address.partition(":")
        assert await wrong_server(host, int(port), expected[name]) == ""
    assert await wrong_server("127.0.0.1", 1, "Redis") == ""

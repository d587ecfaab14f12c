"""Servers that may be killed: a Redis, a Kafka and pairs of databases of these tests' own, started on first use."""

from collections.abc import AsyncIterator, Iterator

import pytest

from devstack import Stack
from devstack.replication import Pair


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that starts its own servers, even if the environment names servers to use."""
    stack = Stack(tmp_path_factory.mktemp("faults"), own=True)
    yield stack
    stack.discard()


@pytest.fixture(scope="session")
async def mariadb_pair(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    """Two MariaDB servers."""
    pair = Pair(tmp_path_factory.mktemp("mariadb"), "mariadb")
    await pair.start()
    yield pair
    await pair.discard()


@pytest.fixture(scope="session")
async def mysql_pair(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    """Two MySQL servers."""
    pair = Pair(tmp_path_factory.mktemp("mysql"), "mysql")
    await pair.start()
    yield pair
    await pair.discard()


@pytest.fixture(params=["mariadb", "mysql"])
def pair(request: pytest.FixtureRequest) -> Pair:
    """Each kind of database in turn."""
    return request.getfixturevalue(f"{request.param}_pair")

"""A pair of servers: what is committed on the primary reaches the replica, whichever of the two is the primary."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devstack.replication import Pair, run


@pytest.fixture(params=["mariadb", "mysql"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    pair = Pair(tmp_path / "pair", request.param)
    await pair.start()
    yield pair
    await pair.discard()


async def test_a_killed_primary_comes_back_as_the_replica(pair: Pair) -> None:
    first, second = pair.servers
    assert (first.user, first.password) == (second.user, second.password)
    await run(
        first, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)"
    )
    await pair.caught_up()
    await pair.kill(first)
    await pair.promote()
    assert (pair.primary, pair.replica) == (second, first)
    await run(second, "INSERT INTO shop.t VALUES (2)")
    await pair.restart(first)
    await pair.follow()
    await pair.caught_up()
    assert await run(first, "SELECT id FROM shop.t") == [(1,), (2,)]
    names = [(await run(server, "SHOW BINARY LOGS"))[0][0] for server in pair.servers]
    assert names == ["first.000001", "second.000001"]

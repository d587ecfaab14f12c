"""Pairs of databases that replicate, of one test's own."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devstack.replication import Pair, run
from hosts_support import CREATE_ACCOUNT


@pytest.fixture(params=["mariadb", "mysql"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    """Each kind of database in turn, with a table shop.t that holds one row."""
    pair = Pair(tmp_path / "pair", request.param)
    await pair.start()
    await run(
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

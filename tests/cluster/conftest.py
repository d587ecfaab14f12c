"""The cluster of the session."""

from collections.abc import AsyncIterator

import pytest

from cluster.servers import SparkCluster
from common.waiting import eventually


@pytest.fixture(scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SparkCluster]:
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"), workers=2)
    try:
        await eventually(cluster.is_ready, seconds=120)
        yield cluster
    finally:
        cluster.kill()

"""The cluster and the object store of the session."""

from collections.abc import AsyncIterator

import pytest

from cluster.servers import ObjectStore, SparkCluster
from common.waiting import eventually


@pytest.fixture(scope="session")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SparkCluster]:
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"), workers=2)
    try:
        await eventually(cluster.is_ready, seconds=120)
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture(scope="session")
async def object_store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ObjectStore]:
    store = ObjectStore(tmp_path_factory.mktemp("s3"))
    try:
        await eventually(lambda: store.make_bucket("lake"), seconds=60)
        yield store
    finally:
        store.kill()

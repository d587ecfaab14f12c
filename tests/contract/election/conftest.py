"""Leases in each storage, and replicas that compete for them."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from common.waiting import cancelled
from contract.election.kubernetes_leases import NAMESPACE, LeaseApi, serving
from contract.election.replica import RENEW, Replica, Start
from contract.election.storages import KubernetesStorage, RedisStorage, Storage
from databus_core.errors import LeadershipLost
from databus_core.leases import LeaderLease
from databus_core.leases.kubernetes import connect_kubernetes
from devstack import Server
from devstack.certificates import Authority


@pytest.fixture
async def redis_storage(redis_server: Server) -> AsyncIterator[RedisStorage]:
    async with Redis.from_url(redis_server.url) as client:
        yield RedisStorage(client)


@pytest.fixture
def account(tmp_path: Path, authority: Authority) -> Path:
    """The files of a pod's service account."""
    (tmp_path / "namespace").write_text(NAMESPACE)
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_bytes(authority.ca.read_bytes())
    return tmp_path


@pytest.fixture
def strict_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make clients as strict as in Python 3.13, which refuses the tests' authority: it lacks extensions."""
    make = ssl.create_default_context

    def strict(*args: Any, **kwargs: Any) -> ssl.SSLContext:
        context = make(*args, **kwargs)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


@pytest.fixture
async def kubernetes_storage(account: Path, authority: Authority, strict_tls: None) -> AsyncIterator[KubernetesStorage]:
    server = LeaseApi("first")
    async with serving(server, authority.issue("kubernetes")) as url, connect_kubernetes(url, account) as client:
        yield KubernetesStorage(server, client)


@pytest.fixture(params=["redis_storage", "kubernetes_storage"])
def storage(request: pytest.FixtureRequest) -> Storage:
    return request.getfixturevalue(request.param)


@pytest.fixture
async def start(storage: Storage) -> AsyncIterator[Start]:
    """Start replicas, which end with the test."""
    replicas: list[Replica] = []

    def start(lease: str | LeaderLease, renew: float = RENEW) -> Replica:
        replicas.append(Replica(storage.lease(lease, 2.5 * renew) if isinstance(lease, str) else lease, renew))
        return replicas[-1]

    yield start
    for replica in replicas:
        await cancelled(replica.task)
        with suppress(asyncio.CancelledError, LeadershipLost):
            replica.task.result()

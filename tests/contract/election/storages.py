"""Where a lease is stored: a real Redis, and a fake of Kubernetes' API for Leases."""

import secrets
from abc import ABC, abstractmethod

import httpx
import pytest
from redis.asyncio import Redis

from contract.election.kubernetes_leases import LeaseApi
from databus_core import names
from databus_core.leases import LeaderLease
from databus_core.leases.kubernetes import KubernetesLease
from databus_core.leases.redis import RedisLease

#: seconds that a lease is valid: 2.5 times RENEW, and a whole number, as Kubernetes requires
DURATION = 2.0
PIPELINE = "Shop_1"
#: httpcore leaves the socket open if a TLS handshake with Kubernetes is cancelled, as when a test ends.
CANCELLED_HANDSHAKES = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*(_SelectorTransport|socket.socket):pytest.PytestUnraisableExceptionWarning"
)


class Storage(ABC):
    """Stores the lease for which all candidates of a test compete."""

    @abstractmethod
    def lease(self, me: str, duration: float = DURATION) -> LeaderLease:
        """Return a candidate's access to the lease."""

    @abstractmethod
    async def forget(self) -> None:
        """Lose all writes, as after a failover to an empty replica."""


class RedisStorage(Storage):
    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.key = names.leader_key(secrets.token_hex(4), "reader")

    def lease(self, me: str, duration: float = DURATION) -> LeaderLease:
        return RedisLease(self.redis, self.key, me, duration)

    async def forget(self) -> None:
        await self.redis.delete(self.key)
        await self.redis.script_flush()


class KubernetesStorage(Storage):
    def __init__(self, server: LeaseApi, client: httpx.AsyncClient) -> None:
        self.server = server
        self._client = client
        self.name = names.leader_lease(PIPELINE, "reader")

    def lease(self, me: str, duration: float = DURATION) -> LeaderLease:
        return KubernetesLease(self._client, self.name, me, duration)

    async def forget(self) -> None:
        self.server.leases.clear()

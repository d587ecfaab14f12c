"""The lease of a role: which process is the active reader or publisher of a pipeline."""

import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, Protocol, get_args

from redis.asyncio import Redis

from databus_core import names
from databus_core.leases.redis import RedisLease
from databus_core.settings import Election, Settings

Role = Literal["reader", "publisher"]
ROLES: tuple[Role, ...] = get_args(Role)

#: how long a lease is valid, in units of `election.renew`
DURATION = 2.5


def election_of(settings: Settings, role: Role) -> Election:
    """Return how replicas of a role agree on the active one."""
    return settings.reader.election if role == "reader" else settings.publisher.election


class LeaderLease(Protocol):
    """A lock that expires. Every method raises a RetryableError while its storage cannot be reached."""

    #: name of this candidate, by which operators can find its process
    me: str

    async def take(self) -> str:
        """Acquire or renew the lease, unless another candidate holds it. Returns the holder."""
        ...

    async def holder(self) -> str | None:
        """Return the holder that is stored, in Kubernetes also that of an expired lease; None if there is none."""
        ...

    async def release(self) -> None:
        """Release the lease if we hold it."""
        ...


@asynccontextmanager
async def open_lease(election: Election, pipeline: str, role: Role, redis: Redis) -> AsyncIterator[LeaderLease]:
    """Open a role's lease, in Redis or in Kubernetes."""
    me = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"
    duration = DURATION * election.renew
    if election.by == "redis":
        yield RedisLease(redis, names.leader_key(pipeline, role), me, duration)
    else:
        # Importing httpx, which this needs, takes a sixth of a service's start.
        from databus_core.leases.kubernetes import KubernetesLease, connect_kubernetes  # noqa: PLC0415

        async with connect_kubernetes() as api:
            yield KubernetesLease(api, names.leader_lease(pipeline, role), me, duration)

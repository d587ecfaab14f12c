"""Leader election: one replica of a service is active, the others stand by. The active one renews a lease.

A lease is valid for 2.5 times `renew`. Its holder stops working after 2 times `renew` without a renewal, before another
replica can acquire it. A standby tries every fifth of `renew`, so it takes over within 3 times `renew`.

The election keeps two readers from taking turns. The data is safe without it: a replica may continue without the lease,
because its process was suspended or the storage lost the lease, but the pipe refuses it and Kafka fences it.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Literal, Protocol, cast

from redis.asyncio import Redis

from databus import metrics, names
from databus.errors import DatabusError, FatalError, LeadershipLost
from databus.leases.kubernetes import KubernetesLease, connect_kubernetes
from databus.leases.redis import RedisLease
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.runtime import Health
from databus.settings import Election

log = get_logger(__name__)

Role = Literal["reader", "publisher"]

#: in units of `renew`: validity of a lease, deadline of its holder, timeout of one renewal, a standby's interval
_DURATION = 2.5
_DEADLINE = 2.0
_ATTEMPT = 0.5
_POLL = 0.2

_RELEASE_SECONDS = 2.0
#: pause between cancellations of the work: longer than a client takes to disconnect, which may swallow the first one
_LEAVE_SECONDS = 8.0
_SUSPENDED = "this process was not running"


class LeaderLease(Protocol):
    """A lock that expires. Every method raises a RetryableError while its storage cannot be reached."""

    #: identifies this candidate, also to operators
    me: str

    async def take(self) -> str:
        """Acquire or renew the lease, unless another candidate holds it. Returns the holder."""
        ...

    async def holder(self) -> str | None:
        """Return the current holder."""
        ...

    async def release(self) -> None:
        """Release the lease if we hold it."""
        ...


@asynccontextmanager
async def leading(election: Election, pipeline: str, role: Role, redis: Redis, health: Health) -> AsyncIterator[None]:
    """Stand by until no other replica is active, then run the block.

    If the lease is lost meanwhile, the block is cancelled and LeadershipLost is raised.
    """
    async with open_lease(election, pipeline, role, redis) as lease, holding(lease, role, election.renew, health):
        yield


@asynccontextmanager
async def open_lease(election: Election, pipeline: str, role: Role, redis: Redis) -> AsyncIterator[LeaderLease]:
    """Connect to the storage of a role's lease."""
    me = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"
    duration = _DURATION * election.renew
    if election.by == "redis":
        yield RedisLease(redis, names.leader_key(pipeline, role), me, duration)
    else:
        async with connect_kubernetes() as api:
            yield KubernetesLease(api, names.leader_lease(pipeline, role), me, duration)


@asynccontextmanager
async def holding(lease: LeaderLease, role: Role, renew: float, health: Health) -> AsyncIterator[None]:
    """Do what `leading` does with a given lease, which is valid for 2.5 times `renew` seconds."""
    leader = metrics.LEADER.labels(role)
    try:
        until = await _acquire(lease, role, renew, health)
        health.down(f"becoming the active {role}")
        leader.set(1)
        async with _Term(lease, renew, until):
            yield
    finally:
        leader.set(0)
        with suppress(DatabusError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                await lease.release()


async def _acquire(lease: LeaderLease, role: Role, renew: float, health: Health) -> float:
    """Wait until we hold the lease. Returns the loop time until which we certainly do."""
    clock = asyncio.get_running_loop().time
    leader = None
    while True:
        requested = clock()
        holder = await lease.take()
        if holder == lease.me:
            log.info(LogEvent.LEADERSHIP_ACQUIRED, f"this replica is the active {role} now", role=role)
            return requested + _DEADLINE * renew
        health.stand_by(f"standby: {holder} is the active {role}")
        health.beat()
        if holder != leader:
            log.info(LogEvent.STANDBY, f"another replica is the active {role}; standing by", role=role, holder=holder)
            leader = holder
        await asyncio.sleep(_POLL * renew)


class _Term:
    """The time while we hold the lease: it is renewed, and the work is cancelled when it is lost."""

    _work: "asyncio.Task[object]"
    _keeping: "asyncio.Task[None]"

    def __init__(self, lease: LeaderLease, renew: float, until: float) -> None:
        self._lease = lease
        self._renew = renew
        self._until = until
        self._clock = asyncio.get_running_loop().time
        self._cancels = 0
        self._lost: Exception | None = None

    async def __aenter__(self) -> None:
        self._work = cast("asyncio.Task[object]", asyncio.current_task())
        self._keeping = asyncio.create_task(self._keep())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keeping.cancel()
        for _ in range(self._cancels):
            self._work.uncancel()
        await asyncio.wait({self._keeping})
        if isinstance(error, asyncio.CancelledError) and self._work.cancelling():
            return  # it was also cancelled from elsewhere
        if isinstance(error, FatalError) and not self._lost and await self._deposed():
            self._lost = LeadershipLost(f"another replica is active now: {error}")
        if self._lost and isinstance(error, asyncio.CancelledError | DatabusError | None):
            raise self._lost from error

    async def _keep(self) -> None:
        """Renew the lease until it is lost; then cancel the work, repeatedly until it ends."""
        try:
            await self._renew_until_lost()
        except Exception as error:  # noqa: BLE001  # raised where the work ends
            self._lost = error
        while True:
            self._cancels += 1
            self._work.cancel()
            await asyncio.sleep(_LEAVE_SECONDS)

    async def _renew_until_lost(self) -> None:
        """Renew the lease in time. Raises LeadershipLost."""
        pause, reason = self._renew, _SUSPENDED
        while True:
            await asyncio.sleep(min(pause, self._until - self._clock()))
            requested = self._clock()
            if requested >= self._until:
                raise LeadershipLost(f"the lease was not renewed for {_DEADLINE * self._renew:g} s: {reason}")
            try:
                async with asyncio.timeout_at(min(self._until, requested + _ATTEMPT * self._renew)):
                    holder = await self._lease.take()
            except (DatabusError, TimeoutError) as error:
                pause, reason = _POLL * self._renew, str(error) or "no answer"
                continue
            if holder != self._lease.me:
                raise LeadershipLost(f"{holder} has acquired the lease")
            self._until = requested + _DEADLINE * self._renew
            pause, reason = self._renew, _SUSPENDED

    async def _deposed(self) -> bool:
        """Say whether another replica is active: then Kafka fences us, and the database closes our connection."""
        with suppress(DatabusError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                return self._clock() >= self._until or await self._lease.holder() not in (None, self._lease.me)
        return False

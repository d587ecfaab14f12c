"""One active replica of a service, and others that stand by: the active one holds a lease and renews it.

A lease lasts two and a half times `renew`. Its holder stops working after two times `renew` without a renewal, before
anybody else can win it, and a standby asks every fifth of `renew`: so the work goes on within three times `renew`.

This keeps two readers from taking turns. It is not what keeps data safe: whoever works on without the lease, because it
was asleep or because the keeper of the lease forgot it, is refused by the pipe's claims and by Kafka.
"""

import asyncio
import logging
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
from databus.runtime import Health
from databus.settings import Election, Settings

log = logging.getLogger("databus")

Role = Literal["reader", "publisher"]

#: all in units of `renew`
_DURATION = 2.5
_DEADLINE = 2.0
_ATTEMPT = 0.5
_POLL = 0.2

_RELEASE_SECONDS = 2.0
#: longer than any client of ours takes to disconnect; a work that goes on was told while one took it for its own
_LEAVE_SECONDS = 8.0
_SLEPT = "this process was not running"


class Lease(Protocol):
    """A lock that ends by itself. Raises a RetryableError while its keeper cannot be reached."""

    #: names this candidate, for its operator too
    me: str

    async def take(self) -> str:
        """Take the lease, or begin its time anew; give its holder, who is another where it was not to be had."""
        ...

    async def holder(self) -> str | None:
        """Give who holds the lease now."""
        ...

    async def release(self) -> None:
        """End the lease if it is ours."""
        ...


@asynccontextmanager
async def leading(settings: Settings, role: Role, redis: Redis, health: Health) -> AsyncIterator[None]:
    """Stand by until no other replica is active, then do the work.

    Raises LeadershipLost where the lease is lost meanwhile: the work is then cancelled.
    """
    renew = _election(settings, role).renew
    async with open_lease(settings, role, redis) as lease, holding(lease, role, renew, health):
        yield


@asynccontextmanager
async def open_lease(settings: Settings, role: Role, redis: Redis) -> AsyncIterator[Lease]:
    """Connect to who keeps the lease of a role."""
    election = _election(settings, role)
    me = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}"
    duration = _DURATION * election.renew
    if election.by == "redis":
        yield RedisLease(redis, names.leader_key(settings.name, role), me, duration)
    else:
        async with connect_kubernetes() as api:
            yield KubernetesLease(api, names.leader_lease(settings.name, role), me, duration)


@asynccontextmanager
async def holding(lease: Lease, role: Role, renew: float, health: Health) -> AsyncIterator[None]:
    """Do as `leading`, with a lease at hand that lasts 2.5 times `renew` seconds."""
    leader = metrics.LEADER.labels(role)
    try:
        until = await _win(lease, role, renew, health)
        health.down(f"becoming the active {role}")
        leader.set(1)
        async with _Term(lease, renew, until):
            yield
    finally:
        leader.set(0)
        with suppress(DatabusError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                await lease.release()


async def _win(lease: Lease, role: Role, renew: float, health: Health) -> float:
    """Wait until the lease is ours; give the time until which it surely is."""
    clock = asyncio.get_running_loop().time
    leader = None
    while True:
        asked = clock()
        holder = await lease.take()
        if holder == lease.me:
            log.info("the lease is ours: active as %s", role)
            return asked + _DEADLINE * renew
        health.up(f"standby: {holder} is the active {role}")
        health.beat()
        if holder != leader:
            log.info("standby: %s is the active %s", holder, role)
            leader = holder
        await asyncio.sleep(_POLL * renew)


class _Term:
    """The time for which the lease is ours: it is renewed, and the work is cancelled when it is lost."""

    _work: "asyncio.Task[object]"
    _keeping: "asyncio.Task[None]"

    def __init__(self, lease: Lease, renew: float, until: float) -> None:
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
            return  # somebody else cancelled it too
        if isinstance(error, FatalError) and not self._lost and await self._deposed():
            self._lost = LeadershipLost(f"another replica is active by now: {error}")
        if self._lost and isinstance(error, asyncio.CancelledError | DatabusError | None):
            raise self._lost from error

    async def _keep(self) -> None:
        """Renew the lease while it is ours; then cancel the work, again if it does not end."""
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
        pause, trouble = self._renew, _SLEPT
        while True:
            await asyncio.sleep(min(pause, self._until - self._clock()))
            asked = self._clock()
            if asked >= self._until:
                raise LeadershipLost(f"the lease was not renewed for {_DEADLINE * self._renew:g} s: {trouble}")
            try:
                async with asyncio.timeout_at(min(self._until, asked + _ATTEMPT * self._renew)):
                    holder = await self._lease.take()
            except (DatabusError, TimeoutError) as error:
                pause, trouble = _POLL * self._renew, str(error) or "no answer came"
                continue
            if holder != self._lease.me:
                raise LeadershipLost(f"{holder} has taken the lease")
            self._until = asked + _DEADLINE * self._renew
            pause, trouble = self._renew, _SLEPT

    async def _deposed(self) -> bool:
        """Say whether another replica is active: it fences us at Kafka, the database hangs up on us for it."""
        with suppress(DatabusError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                return self._clock() >= self._until or await self._lease.holder() not in (None, self._lease.me)
        return False


def _election(settings: Settings, role: Role) -> Election:
    return settings.reader.election if role == "reader" else settings.publisher.election

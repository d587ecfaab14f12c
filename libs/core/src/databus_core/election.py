"""Leader election: one replica of a service is active, the others stand by.

The active replica renews a lease every `renew` seconds (setting `election.renew`). The lease is valid for 2.5 times
`renew`. If the active replica has not renewed it for 2 times `renew`, its work is cancelled. If the current step of
that work does not end within another 0.5 times `renew`, it may overlap with the work of the next active replica.

The standbys try to acquire the lease every 0.2 times `renew`, so one of them takes over within 3 times `renew` after
the last renewal. With a Kubernetes lease this may take up to 1 s longer, because its duration is rounded up to full
seconds.

Without the election several readers would keep ending one another's generations (see `databus_core.pipe`). With
`exactly_once`, safety does not depend on the election. Two replicas may work at once, because a process was suspended
or the storage lost the lease; but a generation accepts the entries of one reader only, and Kafka fences all publishers
but the newest.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import cast

from redis.asyncio import Redis

from databus_core.cancellation import raise_if_cancelled
from databus_core.errors import DatabusError, FatalError, LeadershipLost
from databus_core.leases import LeaderLease, Role, open_lease
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import publisher, reader
from databus_core.metrics.common import LEADER
from databus_core.pipe import read_moments
from databus_core.reaching import Reach, Reaching
from databus_core.runtime import Health
from databus_core.settings import Election

log = get_logger(__name__)

#: time without a renewal after which the work is cancelled, in units of `renew`
_DEADLINE = 2.0
#: timeout of one renewal, in units of `renew`
_ATTEMPT = 0.5
#: pause of a standby between its attempts, and of the holder after a failed renewal, in units of `renew`
_POLL = 0.2

_FRESHNESS = {"reader": reader.FRESHNESS, "publisher": publisher.FRESHNESS}

#: timeout for reading or releasing the lease after the work has ended
_RELEASE_SECONDS = 2.0
#: pause until the work is cancelled again, because a client that is disconnecting may swallow a cancellation. The pause
#: is longer than a client needs to disconnect.
_LEAVE_SECONDS = 8.0
#: why a deadline may pass although the storage of the lease reported no error
_SUSPENDED = "this process was suspended or blocked"


@asynccontextmanager
async def leading(
    election: Election, pipeline: str, role: Role, redis: Redis, health: Health, reach: Reach
) -> AsyncIterator[None]:
    """Stand by until no other replica is active, then run the block.

    A standby is ready when `reach` has returned once: it reaches what the work depends on, or raises a DatabusError.
    If the lease is lost during the block, the block is cancelled and LeadershipLost is raised. LeadershipLost also
    replaces a FatalError of the block, if another replica may be active.
    """
    async with (
        open_lease(election, pipeline, role, redis) as lease,
        holding(lease, role, election.renew, health, reach),
    ):
        await _continue_freshness(role, redis, pipeline)
        yield


@asynccontextmanager
async def holding(lease: LeaderLease, role: Role, renew: float, health: Health, reach: Reach) -> AsyncIterator[None]:
    """Do what `leading` does, with this lease. It is renewed every `renew` seconds, and valid for 2.5 times as long."""
    leader = LEADER.labels(role)
    try:
        async with Reaching(reach, health) as reaching:
            deadline = await _acquire(lease, role, renew, health, reaching)
        health.take_over(role)
        _FRESHNESS[role].begin()
        term = _Term(lease, renew, deadline)
        leader.set_function(lambda: term.holds)
        async with term:
            yield
    finally:
        leader.set_function(lambda: 0)
        with suppress(DatabusError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                await lease.release()


async def _continue_freshness(role: Role, redis: Redis, pipeline: str) -> None:
    """Count the freshness from where the replica that was active before has come, if Redis knows that."""
    read_to, published_to = await read_moments(redis, pipeline)
    if moment := published_to if role == "publisher" else read_to or published_to:
        _FRESHNESS[role].complete(moment / 1e6)


async def _acquire(lease: LeaderLease, role: Role, renew: float, health: Health, reaching: Reaching) -> float:
    """Stand by until we hold the lease. Returns the deadline for the next renewal, on the event loop's clock.

    Raises LeadershipLost if that deadline has passed before the storage answers.
    """
    clock = asyncio.get_running_loop().time
    leader = None
    while True:
        requested = clock()
        holder = await lease.take()
        if holder == lease.me:
            deadline = requested + _DEADLINE * renew
            if (answered := clock()) >= deadline:
                raise LeadershipLost(
                    f"the request for the lease took {answered - requested:.1f} s, longer than the "
                    f"{_DEADLINE * renew:g} s for which the lease may be held: its storage is slow "
                    f"(raise {role}.election.renew), or {_SUSPENDED}"
                )
            log.info(LogEvent.LEADERSHIP_ACQUIRED, f"this replica is the active {role} now", role=role)
            return deadline
        _FRESHNESS[role].end()
        reaching.begin()
        if health.has_reached:
            health.stand_by(f"standby: {holder} is the active {role}")
        else:
            health.prepare(f"standby: {reaching.reason}")
        health.beat()
        if holder != leader:
            log.info(LogEvent.STANDBY, f"another replica is the active {role}; standing by", role=role, holder=holder)
            leader = holder
        await asyncio.sleep(_POLL * renew)


class _Term:
    """The time while we hold the lease. Renews the lease, and cancels the work when the lease is lost."""

    #: the task that runs the block
    _work: "asyncio.Task[object]"
    _renewals: "asyncio.Task[None]"

    def __init__(self, lease: LeaderLease, renew: float, deadline: float) -> None:
        self._lease = lease
        self._renew = renew
        #: when the work is cancelled unless the lease is renewed before, on the event loop's clock
        self._deadline = deadline
        self._clock = asyncio.get_running_loop().time
        #: how often we have cancelled the work
        self._cancels = 0
        #: the error to raise instead of the work's, once the lease is lost
        self._lost: Exception | None = None

    @property
    def holds(self) -> bool:
        """Whether we hold the lease now, as far as we know."""
        return self._lost is None and self._clock() < self._deadline

    async def __aenter__(self) -> None:
        self._work = cast("asyncio.Task[object]", asyncio.current_task())
        self._renewals = asyncio.create_task(self._renew_then_cancel())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._renewals.cancel()
        for _ in range(self._cancels):
            self._work.uncancel()
        await asyncio.wait({self._renewals})
        if isinstance(error, asyncio.CancelledError) and self._work.cancelling():
            return  # other code has cancelled the work, too, and expects this CancelledError
        # A new active replica makes our work fail: Kafka fences our producer, or the database closes our connection.
        if isinstance(error, FatalError) and not self._lost and await self._another_may_be_active():
            self._lost = LeadershipLost(f"another replica may be active now: {error}")
        if self._lost and isinstance(error, asyncio.CancelledError | DatabusError | None):
            raise self._lost from error

    async def _renew_then_cancel(self) -> None:
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
        """Renew the lease every `renew` seconds, and sooner after a failure. Raises LeadershipLost when it is lost."""
        pause, reason = self._renew, _SUSPENDED
        while True:
            raise_if_cancelled()
            await asyncio.sleep(min(pause, self._deadline - self._clock()))
            requested = self._clock()
            if requested >= self._deadline:
                raise LeadershipLost(f"the lease was not renewed for {_DEADLINE * self._renew:g} s: {reason}")
            try:
                async with asyncio.timeout_at(min(self._deadline, requested + _ATTEMPT * self._renew)):
                    holder = await self._lease.take()
            except (DatabusError, TimeoutError) as error:
                pause, reason = _POLL * self._renew, str(error) or "no answer"
                continue
            if holder != self._lease.me:
                raise LeadershipLost(f"{holder} has acquired the lease")
            self._deadline = requested + _DEADLINE * self._renew
            pause, reason = self._renew, _SUSPENDED

    async def _another_may_be_active(self) -> bool:
        """Return whether the deadline has passed or the storage names another holder; False if it does not answer."""
        with suppress(DatabusError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                return self._clock() >= self._deadline or await self._lease.holder() not in (None, self._lease.me)
        return False

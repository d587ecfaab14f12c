"""A replica that loses its lease, with each storage: its work ends before another's begins."""

import asyncio

import pytest

from contract.election.replica import RENEW, Start
from contract.election.storages import CANCELLED_HANDSHAKES, Storage
from databus_core import election
from databus_core.election import holding
from databus_core.errors import Fenced, LeadershipLost
from databus_core.leases import LeaderLease
from databus_core.runtime import Health

pytestmark = CANCELLED_HANDSHAKES


async def reach() -> None:
    """Reach what the work depends on: nothing."""


class UnreachableLease:
    """A lease whose storage does not answer while `unreachable` is true."""

    def __init__(self, lease: LeaderLease) -> None:
        self.me = lease.me
        self.unreachable = False
        self._lease = lease

    async def take(self) -> str:
        await self._reach()
        return await self._lease.take()

    async def holder(self) -> str | None:
        await self._reach()
        return await self._lease.holder()

    async def release(self) -> None:
        await self._reach()
        await self._lease.release()

    async def _reach(self) -> None:
        if self.unreachable:
            await asyncio.Event().wait()


async def test_a_replica_that_cannot_renew_stops_before_another_becomes_active(storage: Storage, start: Start) -> None:
    lease = UnreachableLease(storage.lease("first"))
    first = start(lease)
    await first.working()
    second = start("second")
    await second.standing_by()
    lease.unreachable = True
    with pytest.raises(LeadershipLost, match=r"was not renewed for 1\.6 s: no answer"):
        await first.task
    await second.working()
    assert first.ended < second.began


async def test_a_replica_stops_when_another_has_acquired_the_lease(storage: Storage, start: Start) -> None:
    first = start("first")
    await first.working()
    await storage.forget()
    assert await storage.lease("other").take() == "other"
    with pytest.raises(LeadershipLost, match="other has acquired the lease"):
        await first.task


async def test_after_the_storage_lost_the_lease_only_one_replica_stays_active(storage: Storage, start: Start) -> None:
    """Two may be active until the next renewal. This does no harm: the pipe accepts the data of one reader only."""
    replicas = [start("first"), start("second")]
    for _ in range(4):
        await asyncio.wait({r.task for r in replicas}, timeout=1.5 * RENEW, return_when=asyncio.FIRST_COMPLETED)
        working = [r.lease.me for r in replicas if r.works.is_set() and not r.task.done()]
        assert working == [await storage.lease("").holder()]
        replicas = [start(r.lease.me) if r.task.done() else r for r in replicas]
        await storage.forget()


async def test_work_that_swallows_cancellations_is_cancelled_until_it_ends(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(election, "_LEAVE_SECONDS", 0.1)
    cancellations = 0
    with pytest.raises(LeadershipLost):
        async with asyncio.timeout(20), holding(storage.lease("first"), "reader", RENEW, Health(), reach):
            await storage.forget()
            await storage.lease("other").take()
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancellations += 1
                    if cancellations == 3:
                        raise
    task = asyncio.current_task()
    assert task and not task.cancelling()


class Slow(UnreachableLease):
    """A lease whose storage executes `take` at once, but takes longer to answer than the lease may be held."""

    async def take(self) -> str:
        holder = await super().take()
        await asyncio.sleep(2.1 * RENEW)
        return holder


async def test_a_lease_that_was_acquired_too_late_is_released_before_work_begins(
    storage: Storage, start: Start
) -> None:
    first = start(Slow(storage.lease("first")))
    with pytest.raises(LeadershipLost, match=r"took \d+\.\d s, longer than the 1\.6 s"):
        await first.task
    assert not first.works.is_set()
    assert await storage.lease("").holder() is None


async def test_a_fatal_error_of_a_deposed_replica_is_a_lost_leadership(storage: Storage) -> None:
    """The successor causes the error: Kafka fences the old producer, and the database closes the old connection."""
    with pytest.raises(LeadershipLost, match="another replica may be active now"):
        async with holding(storage.lease("first"), "publisher", RENEW, Health(), reach):
            await storage.forget()
            await storage.lease("other").take()
            raise Fenced("another producer")


async def test_a_fatal_error_of_the_active_replica_is_raised_unchanged(storage: Storage) -> None:
    with pytest.raises(Fenced):
        async with holding(storage.lease("first"), "publisher", RENEW, Health(), reach):
            raise Fenced("a producer of another pipeline")
    assert await storage.lease("").holder() is None

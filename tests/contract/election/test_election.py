"""Leader election with each storage of the lease: who is active, who stands by, and who takes over."""

import asyncio
from time import monotonic

import pytest

from common.waiting import eventually
from contract.election.replica import RENEW, Start
from contract.election.storages import CANCELLED_HANDSHAKES, DURATION, Storage
from databus_core.metrics.common import REGISTRY

pytestmark = CANCELLED_HANDSHAKES

#: seconds between renewals where a lease must not be lost, even if the machine stands still for some seconds
PATIENT = 4.0
#: seconds that requests may take on a busy machine
BUSY = 0.4


async def test_only_one_replica_is_active_at_a_time_and_each_becomes_active(start: Start) -> None:
    waiting = [start(f"replica-{number}") for number in range(5)]
    ended = 0.0
    while waiting:
        works = [asyncio.create_task(replica.working()) for replica in waiting]
        await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        for task in works:
            task.cancel()
        (active,) = (replica for replica in waiting if replica.works.is_set())
        waiting.remove(active)
        for standby in waiting:
            await standby.standing_by()  # it has tried to acquire the lease
            assert not standby.works.is_set()
        assert active.began >= ended
        active.leave.set()
        await active.task
        ended = active.ended


async def test_a_standby_is_ready_and_names_the_active_replica(start: Start) -> None:
    first = start("first", PATIENT)
    await first.working()
    second = start("second", PATIENT)
    await second.standing_by()
    assert (second.ready, second.reason) == (True, "standby: first is the active reader")
    assert REGISTRY.get_sample_value("databus_leader", {"role": "reader"}) == 1


async def test_a_standby_is_ready_once_it_has_reached_what_it_depends_on(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("databus_core.reaching._PAUSE_SECONDS", 0.01)
    first = start("first", PATIENT)
    await first.working()
    second = start("second", PATIENT)
    second.reachable.clear()

    async def has_said_why() -> bool:
        return second.reason == "standby: no broker answers"

    await eventually(has_said_why)
    assert not second.ready
    second.reachable.set()
    await second.standing_by()
    second.reachable.clear()  # what was reached once may be away: that does not concern a standby
    await asyncio.wait({second.task}, timeout=0.5 * PATIENT)
    assert second.ready


async def test_a_standby_that_has_reached_nothing_takes_over_all_the_same(start: Start) -> None:
    first = start("first", PATIENT)
    await first.working()
    second = start("second", PATIENT)
    second.reachable.clear()
    first.leave.set()
    await second.working()


async def test_a_replica_stays_active_while_it_renews_its_lease(start: Start) -> None:
    first = start("first")
    await first.working()
    second = start("second")
    await asyncio.wait({first.task, second.task}, timeout=2 * DURATION)
    assert not second.works.is_set()
    assert not first.task.done()


async def test_a_standby_takes_over_from_a_vanished_replica_within_three_renewals(
    storage: Storage, start: Start
) -> None:
    vanishing = storage.lease("vanishing")
    assert await vanishing.take() == "vanishing"
    standby = start("standby")
    await standby.standing_by()
    last_renewal = monotonic()
    assert await vanishing.take() == "vanishing"
    await standby.working()
    assert DURATION <= standby.began - last_renewal < 3 * RENEW + BUSY


async def test_a_standby_takes_over_at_once_when_the_active_replica_ends(start: Start) -> None:
    first = start("first")
    await first.working()
    second = start("second")
    await second.standing_by()
    first.leave.set()
    await first.task
    await second.working()
    assert 0 < second.began - first.ended < RENEW


async def test_a_replica_that_is_cancelled_releases_the_lease(storage: Storage, start: Start) -> None:
    first = start("first")
    await first.working()
    first.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first.task
    assert await storage.lease("").holder() is None

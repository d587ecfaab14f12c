"""Which replica is active: one suite for each storage of the lease, a real Redis and the API of Kubernetes."""

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import httpx
import pytest
from redis.asyncio import Redis

from contract.kubernetes_leases import NAMESPACE, LeaseApi, serving
from databus import election, metrics, names
from databus.election import LeaderLease, holding
from databus.errors import Fenced, InvalidSettings, KubernetesUnavailable, LeadershipLost, RedisUnavailable
from databus.leases.kubernetes import KubernetesLease, connect_kubernetes
from databus.leases.redis import RedisLease
from databus.runtime import Health
from devstack import Server
from devstack.certificates import Authority

RENEW = 0.8
#: a lease of Kubernetes has full seconds
DURATION = 2.0
#: time for the requests on a busy machine
BUSY = 0.4
PIPELINE = "Shop_1"


class Severed:
    """A lease whose storage cannot be reached once it is cut off."""

    def __init__(self, lease: LeaderLease) -> None:
        self.me = lease.me
        self.off = False
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
        if self.off:
            await asyncio.Event().wait()


class Keeper(ABC):
    """Where leases are stored."""

    @abstractmethod
    def lease(self, me: str) -> LeaderLease:
        """A lease that lasts `DURATION`, for a candidate; all candidates want the same one."""

    @abstractmethod
    async def forget(self) -> None:
        """Lose all writes."""


class RedisKeeper(Keeper):
    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.key = names.leader_key(secrets.token_hex(4), "reader")

    def lease(self, me: str) -> LeaderLease:
        return RedisLease(self.redis, self.key, me, DURATION)

    async def forget(self) -> None:
        await self.redis.delete(self.key)
        await self.redis.script_flush()


class KubernetesKeeper(Keeper):
    def __init__(self, server: LeaseApi, client: httpx.AsyncClient) -> None:
        self.server = server
        self._client = client
        self.name = names.leader_lease(PIPELINE, "reader")

    def lease(self, me: str) -> LeaderLease:
        return KubernetesLease(self._client, self.name, me, DURATION)

    async def forget(self) -> None:
        self.server.leases.clear()


@pytest.fixture
async def redis_keeper(redis_server: Server) -> AsyncIterator[RedisKeeper]:
    async with Redis.from_url(redis_server.url) as client:
        yield RedisKeeper(client)


@pytest.fixture
def account(tmp_path: Path, authority: Authority) -> Path:
    """The files that a pod finds."""
    (tmp_path / "namespace").write_text(NAMESPACE)
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_bytes(authority.ca.read_bytes())
    return tmp_path


@pytest.fixture
async def kubernetes_keeper(account: Path, authority: Authority) -> AsyncIterator[KubernetesKeeper]:
    server = LeaseApi("first")
    async with serving(server, authority.issue("kubernetes")) as url, connect_kubernetes(url, account) as client:
        yield KubernetesKeeper(server, client)


@pytest.fixture(params=["redis_keeper", "kubernetes_keeper"])
def keeper(request: pytest.FixtureRequest) -> Keeper:
    return request.getfixturevalue(request.param)


class Replica(Health):
    """A replica of a service: it stands by, then works until `leave` is set, and notes when each began."""

    def __init__(self, lease: LeaderLease) -> None:
        super().__init__()
        self.lease = lease
        self.stands_by, self.works, self.leave = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.began = self.ended = 0.0
        self.task = asyncio.create_task(self._run())

    def stand_by(self, reason: str) -> None:
        super().stand_by(reason)
        self.stands_by.set()

    async def _run(self) -> None:
        async with holding(self.lease, "reader", RENEW, self):
            self.began = monotonic()
            self.works.set()
            try:
                await self.leave.wait()
            finally:
                self.ended = monotonic()


Start = Callable[[str | LeaderLease], Replica]


@pytest.fixture
async def start(keeper: Keeper) -> AsyncIterator[Start]:
    """Start replicas; they end with the test."""
    replicas: list[Replica] = []

    def start(lease: str | LeaderLease) -> Replica:
        replicas.append(Replica(keeper.lease(lease) if isinstance(lease, str) else lease))
        return replicas[-1]

    async with asyncio.timeout(20):
        yield start
    for replica in replicas:
        replica.task.cancel()
        with suppress(asyncio.CancelledError, LeadershipLost):
            await replica.task


async def test_one_is_active_at_a_time_and_all_get_their_turn(start: Start) -> None:
    waiting = [start(f"replica-{number}") for number in range(5)]
    ended = 0.0
    while waiting:
        works = [asyncio.create_task(replica.works.wait()) for replica in waiting]
        await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        for task in works:
            task.cancel()
        (active,) = (replica for replica in waiting if replica.works.is_set())
        waiting.remove(active)
        for standby in waiting:
            await standby.stands_by.wait()  # it has asked for the lease, too
            assert not standby.works.is_set()
        assert active.began >= ended
        active.leave.set()
        await active.task
        ended = active.ended


async def test_a_standby_is_ready_and_names_the_active_one(start: Start) -> None:
    first = start("first")
    await first.works.wait()
    second = start("second")
    await second.stands_by.wait()
    assert (second.ready, second.reason) == (True, "standby: first is the active reader")
    assert metrics.LEADER.labels("reader")._value.get() == 1


async def test_the_active_one_stays_active_while_it_renews(start: Start) -> None:
    first = start("first")
    await first.works.wait()
    second = start("second")
    await asyncio.wait({first.task, second.task}, timeout=2 * DURATION)
    assert not second.works.is_set()
    assert not first.task.done()


async def test_a_standby_takes_over_within_three_renewals_from_one_that_vanished(keeper: Keeper, start: Start) -> None:
    gone = keeper.lease("gone")
    assert await gone.take() == "gone"
    heir = start("heir")
    await heir.stands_by.wait()
    vanished = monotonic()
    assert await gone.take() == "gone"
    await heir.works.wait()
    assert DURATION <= heir.began - vanished < 3 * RENEW + BUSY


async def test_a_standby_takes_over_at_once_from_one_that_ended(start: Start) -> None:
    first = start("first")
    await first.works.wait()
    second = start("second")
    await second.stands_by.wait()
    first.leave.set()
    await first.task
    await second.works.wait()
    assert 0 < second.began - first.ended < RENEW


async def test_one_that_is_cancelled_just_stops(keeper: Keeper, start: Start) -> None:
    first = start("first")
    await first.works.wait()
    first.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first.task
    assert await keeper.lease("").holder() is None


async def test_one_that_cannot_renew_stops_before_another_begins(keeper: Keeper, start: Start) -> None:
    lease = Severed(keeper.lease("first"))
    first = start(lease)
    await first.works.wait()
    second = start("second")
    await second.stands_by.wait()
    lease.off = True
    with pytest.raises(LeadershipLost, match=r"was not renewed for 1\.6 s: no answer"):
        await first.task
    await second.works.wait()
    assert first.ended < second.began


async def test_one_whose_lease_another_one_has_acquired_stops(keeper: Keeper, start: Start) -> None:
    first = start("first")
    await first.works.wait()
    await keeper.forget()
    assert await keeper.lease("thief").take() == "thief"
    with pytest.raises(LeadershipLost, match="thief has acquired the lease"):
        await first.task


async def test_after_a_lost_lease_the_next_renewal_leaves_one_active(keeper: Keeper, start: Start) -> None:
    """Two may work until then. The work continues, and the pipe keeps it safe."""
    replicas = [start("first"), start("second")]
    for _ in range(4):
        await asyncio.wait({r.task for r in replicas}, timeout=1.5 * RENEW, return_when=asyncio.FIRST_COMPLETED)
        working = [r.lease.me for r in replicas if r.works.is_set() and not r.task.done()]
        assert working == [await keeper.lease("").holder()]
        replicas = [start(r.lease.me) if r.task.done() else r for r in replicas]
        await keeper.forget()


async def test_work_that_swallows_its_cancellation_is_cancelled_again(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(election, "_LEAVE_SECONDS", 0.1)
    cancellations = 0
    with pytest.raises(LeadershipLost):
        async with asyncio.timeout(20), holding(keeper.lease("first"), "reader", RENEW, Health()):
            await keeper.forget()
            await keeper.lease("thief").take()
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancellations += 1
                    if cancellations == 3:
                        raise
    task = asyncio.current_task()
    assert task and not task.cancelling()


class Slow(Severed):
    """A lease whose storage executes each request at once, but answers later than the lease may be held."""

    async def take(self) -> str:
        holder = await super().take()
        await asyncio.sleep(2.1 * RENEW)
        return holder


async def test_a_lease_that_was_acquired_too_late_is_released_before_work_begins(keeper: Keeper, start: Start) -> None:
    first = start(Slow(keeper.lease("first")))
    with pytest.raises(LeadershipLost, match=r"took 1\.\d s to answer, longer than the 1\.6 s"):
        await first.task
    assert not first.works.is_set()
    assert await keeper.lease("").holder() is None


async def test_an_error_of_a_deposed_one_is_not_fatal(keeper: Keeper) -> None:
    """Kafka fences it and the database closes its connection, both because of a successor that the lease names."""
    with pytest.raises(LeadershipLost, match="another replica may be active now"):
        async with holding(keeper.lease("first"), "publisher", RENEW, Health()):
            await keeper.forget()
            await keeper.lease("thief").take()
            raise Fenced("another producer")


async def test_an_error_of_the_active_one_is_fatal(keeper: Keeper) -> None:
    with pytest.raises(Fenced):
        async with holding(keeper.lease("first"), "publisher", RENEW, Health()):
            raise Fenced("a producer of a stranger")
    assert await keeper.lease("").holder() is None


async def test_a_redis_without_memory_lets_the_active_one_renew(redis_keeper: RedisKeeper) -> None:
    lease = redis_keeper.lease("first")
    await redis_keeper.redis.config_set("maxmemory", 1)
    try:
        assert await lease.take() == "first"
        assert await lease.take() == "first"
        await lease.release()
    finally:
        await redis_keeper.redis.config_set("maxmemory", 0)


async def test_a_redis_that_is_away_is_retryable() -> None:
    async with Redis.from_url("redis://127.0.0.1:1/0") as nobody:
        with pytest.raises(RedisUnavailable):
            await RedisLease(nobody, "key", "me", DURATION).take()


async def test_an_operator_may_edit_the_lease_of_kubernetes(kubernetes_keeper: KubernetesKeeper) -> None:
    lease = kubernetes_keeper.lease("first")
    await lease.take()
    kubernetes_keeper.server.annotate(kubernetes_keeper.name)
    assert await lease.take() == "first"
    kept = kubernetes_keeper.server.leases[kubernetes_keeper.name]
    assert kept["metadata"]["annotations"] == {"seen": "yes"}
    assert kept["spec"]["leaseTransitions"] == 1
    assert kept["spec"]["leaseDurationSeconds"] == DURATION


async def test_of_two_writers_one_is_refused(kubernetes_keeper: KubernetesKeeper) -> None:
    leases = [kubernetes_keeper.lease(f"replica-{n}") for n in range(8)]
    holders = await asyncio.gather(*(lease.take() for lease in leases))
    assert len(set(holders)) == 1


async def test_the_token_is_read_for_each_request_and_a_missing_right_is_named(
    kubernetes_keeper: KubernetesKeeper, account: Path
) -> None:
    lease = kubernetes_keeper.lease("first")
    kubernetes_keeper.server.token = "second"
    with pytest.raises(InvalidSettings, match="grant the service account get, create and update of leases"):
        await lease.take()
    (account / "token").write_text("second\n")
    assert await lease.take() == "first"


async def test_kubernetes_outside_of_a_pod_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="works only in a pod"):
        async with connect_kubernetes(account=tmp_path):
            pass


async def test_an_api_that_is_away_is_retryable(account: Path) -> None:
    async with connect_kubernetes("https://127.0.0.1:1", account) as client:
        with pytest.raises(KubernetesUnavailable):
            await KubernetesLease(client, "lease", "me", DURATION).take()


def test_pipelines_that_differ_only_in_case_do_not_share_a_lease() -> None:
    leases = {names.leader_lease(pipeline, "reader") for pipeline in ("shop-1", "Shop-1", "shop_1")}
    assert len(leases) == 3
    assert "databus-shop-1-reader" in leases

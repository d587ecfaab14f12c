"""Leader election with each storage of the lease: a real Redis, and a fake of Kubernetes' API for Leases."""

import asyncio
import secrets
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from common.waiting import eventually
from contract.kubernetes_leases import NAMESPACE, LeaseApi, serving
from databus_core import election, names
from databus_core.election import LeaderLease, holding
from databus_core.errors import (
    Fenced,
    InvalidSettings,
    KafkaUnavailable,
    KubernetesUnavailable,
    LeadershipLost,
    RedisUnavailable,
)
from databus_core.leases.kubernetes import KubernetesLease, connect_kubernetes
from databus_core.leases.redis import RedisLease
from databus_core.metrics.common import REGISTRY
from databus_core.runtime import Health
from devstack import Server
from devstack.certificates import Authority

# httpcore leaves the socket open if a TLS handshake with Kubernetes is cancelled, as when a test ends.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*(_SelectorTransport|socket.socket):pytest.PytestUnraisableExceptionWarning"
)

#: seconds between renewals
RENEW = 0.8
#: seconds that a lease is valid: 2.5 times RENEW, and a whole number, as Kubernetes requires
DURATION = 2.0
#: seconds that requests may take on a busy machine
BUSY = 0.4
PIPELINE = "Shop_1"


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


class Storage(ABC):
    """Stores the lease for which all candidates of a test compete."""

    @abstractmethod
    def lease(self, me: str) -> LeaderLease:
        """Return a candidate's access to the lease."""

    @abstractmethod
    async def forget(self) -> None:
        """Lose all writes, as after a failover to an empty replica."""


class RedisStorage(Storage):
    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.key = names.leader_key(secrets.token_hex(4), "reader")

    def lease(self, me: str) -> LeaderLease:
        return RedisLease(self.redis, self.key, me, DURATION)

    async def forget(self) -> None:
        await self.redis.delete(self.key)
        await self.redis.script_flush()


class KubernetesStorage(Storage):
    def __init__(self, server: LeaseApi, client: httpx.AsyncClient) -> None:
        self.server = server
        self._client = client
        self.name = names.leader_lease(PIPELINE, "reader")

    def lease(self, me: str) -> LeaderLease:
        return KubernetesLease(self._client, self.name, me, DURATION)

    async def forget(self) -> None:
        self.server.leases.clear()


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


class Replica(Health):
    """A replica of a service: once it is active, it works until `leave` is set. It records when it began and ended."""

    def __init__(self, lease: LeaderLease) -> None:
        super().__init__()
        self.lease = lease
        self.stands_by, self.works, self.leave = asyncio.Event(), asyncio.Event(), asyncio.Event()
        #: set while the replica can reach what it depends on
        self.reachable = asyncio.Event()
        self.reachable.set()
        self.began = self.ended = 0.0
        self.task = asyncio.create_task(self._run())

    def stand_by(self, reason: str) -> None:
        super().stand_by(reason)
        self.stands_by.set()

    async def reach(self) -> None:
        if not self.reachable.is_set():
            raise KafkaUnavailable("no broker answers")

    async def _run(self) -> None:
        async with holding(self.lease, "reader", RENEW, self, self.reach):
            self.began = monotonic()
            self.works.set()
            try:
                await self.leave.wait()
            finally:
                self.ended = monotonic()


async def reach() -> None:
    """Reach what the work depends on: nothing."""


Start = Callable[[str | LeaderLease], Replica]


@pytest.fixture
async def start(storage: Storage) -> AsyncIterator[Start]:
    """Start a replica with a lease, or with a name under which it competes for one; all replicas end with the test."""
    replicas: list[Replica] = []

    def start(lease: str | LeaderLease) -> Replica:
        replicas.append(Replica(storage.lease(lease) if isinstance(lease, str) else lease))
        return replicas[-1]

    yield start
    for replica in replicas:
        replica.task.cancel()
        with suppress(asyncio.CancelledError, LeadershipLost):
            await replica.task


async def test_only_one_replica_is_active_at_a_time_and_each_becomes_active(start: Start) -> None:
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
            await standby.stands_by.wait()  # it has tried to acquire the lease
            assert not standby.works.is_set()
        assert active.began >= ended
        active.leave.set()
        await active.task
        ended = active.ended


async def test_a_standby_is_ready_and_names_the_active_replica(start: Start) -> None:
    first = start("first")
    await first.works.wait()
    second = start("second")
    await second.stands_by.wait()
    assert (second.ready, second.reason) == (True, "standby: first is the active reader")
    assert REGISTRY.get_sample_value("databus_leader", {"role": "reader"}) == 1


async def test_a_standby_is_ready_once_it_has_reached_what_it_depends_on(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("databus_core.reaching._PAUSE_SECONDS", 0.01)
    first = start("first")
    await first.works.wait()
    second = start("second")
    second.reachable.clear()

    async def has_said_why() -> bool:
        return second.reason == "standby: no broker answers"

    await eventually(has_said_why)
    assert not second.ready
    second.reachable.set()
    await second.stands_by.wait()
    second.reachable.clear()  # what was reached once may be away: that does not concern a standby
    await asyncio.wait({second.task}, timeout=RENEW)
    assert second.ready


async def test_a_standby_that_has_reached_nothing_takes_over_all_the_same(start: Start) -> None:
    first = start("first")
    await first.works.wait()
    second = start("second")
    second.reachable.clear()
    first.leave.set()
    await second.works.wait()


async def test_a_replica_stays_active_while_it_renews_its_lease(start: Start) -> None:
    first = start("first")
    await first.works.wait()
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
    await standby.stands_by.wait()
    last_renewal = monotonic()
    assert await vanishing.take() == "vanishing"
    await standby.works.wait()
    assert DURATION <= standby.began - last_renewal < 3 * RENEW + BUSY


async def test_a_standby_takes_over_at_once_when_the_active_replica_ends(start: Start) -> None:
    first = start("first")
    await first.works.wait()
    second = start("second")
    await second.stands_by.wait()
    first.leave.set()
    await first.task
    await second.works.wait()
    assert 0 < second.began - first.ended < RENEW


async def test_a_replica_that_is_cancelled_releases_the_lease(storage: Storage, start: Start) -> None:
    first = start("first")
    await first.works.wait()
    first.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first.task
    assert await storage.lease("").holder() is None


async def test_a_replica_that_cannot_renew_stops_before_another_becomes_active(storage: Storage, start: Start) -> None:
    lease = UnreachableLease(storage.lease("first"))
    first = start(lease)
    await first.works.wait()
    second = start("second")
    await second.stands_by.wait()
    lease.unreachable = True
    with pytest.raises(LeadershipLost, match=r"was not renewed for 1\.6 s: no answer"):
        await first.task
    await second.works.wait()
    assert first.ended < second.began


async def test_a_replica_stops_when_another_has_acquired_the_lease(storage: Storage, start: Start) -> None:
    first = start("first")
    await first.works.wait()
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
    with pytest.raises(LeadershipLost, match=r"took 1\.\d s, longer than the 1\.6 s"):
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


async def test_the_lease_can_be_taken_and_released_when_redis_has_no_memory_left(redis_storage: RedisStorage) -> None:
    lease = redis_storage.lease("first")
    await redis_storage.redis.config_set("maxmemory", 1)
    try:
        assert await lease.take() == "first"
        assert await lease.take() == "first"
        await lease.release()
    finally:
        await redis_storage.redis.config_set("maxmemory", 0)


async def test_the_error_of_an_unreachable_redis_is_retryable() -> None:
    async with Redis.from_url("redis://127.0.0.1:1/0") as unreachable:
        with pytest.raises(RedisUnavailable):
            await RedisLease(unreachable, "key", "me", DURATION).take()


async def test_a_renewal_keeps_what_an_operator_added_to_the_lease_of_kubernetes(
    kubernetes_storage: KubernetesStorage,
) -> None:
    lease = kubernetes_storage.lease("first")
    await lease.take()
    kubernetes_storage.server.annotate(kubernetes_storage.name)
    assert await lease.take() == "first"
    kept = kubernetes_storage.server.leases[kubernetes_storage.name]
    assert kept["metadata"]["annotations"] == {"seen": "yes"}
    assert kept["spec"]["leaseTransitions"] == 1
    assert kept["spec"]["leaseDurationSeconds"] == DURATION


async def test_at_most_one_of_several_concurrent_candidates_acquires_the_lease_of_kubernetes(
    kubernetes_storage: KubernetesStorage,
) -> None:
    leases = [kubernetes_storage.lease(f"replica-{n}") for n in range(8)]
    holders = await asyncio.gather(*(lease.take() for lease in leases))
    assert len(set(holders)) == 1


async def test_the_token_is_read_for_each_request_and_the_error_names_the_missing_permission(
    kubernetes_storage: KubernetesStorage, account: Path
) -> None:
    lease = kubernetes_storage.lease("first")
    kubernetes_storage.server.token = "second"
    with pytest.raises(InvalidSettings, match="grant the service account get, create and update of leases"):
        await lease.take()
    (account / "token").write_text("second\n")
    assert await lease.take() == "first"


async def test_a_missing_namespace_of_kubernetes_is_an_error_that_is_retried_with_pauses(
    kubernetes_storage: KubernetesStorage,
) -> None:
    kubernetes_storage.server.has_namespace = False
    async with asyncio.timeout(10):
        with pytest.raises(KubernetesUnavailable, match="404 to POST"):
            await kubernetes_storage.lease("first").take()


async def test_election_by_kubernetes_outside_of_a_pod_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="works only in a pod"):
        async with connect_kubernetes(account=tmp_path):
            pass


async def test_the_error_of_an_unreachable_kubernetes_api_is_retryable(account: Path) -> None:
    async with connect_kubernetes("https://127.0.0.1:1", account) as client:
        with pytest.raises(KubernetesUnavailable):
            await KubernetesLease(client, "lease", "me", DURATION).take()


def test_pipelines_with_similar_names_do_not_share_a_lease() -> None:
    leases = {names.leader_lease(pipeline, "reader") for pipeline in ("shop-1", "Shop-1", "shop_1")}
    assert len(leases) == 3
    assert "databus-shop-1-reader" in leases

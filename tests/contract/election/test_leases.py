"""What is particular to each storage of the lease."""

import asyncio
from pathlib import Path

import pytest
from redis.asyncio import Redis

from contract.election.storages import CANCELLED_HANDSHAKES, DURATION, KubernetesStorage, RedisStorage
from databus_core import names
from databus_core.errors import InvalidSettings, KubernetesUnavailable, RedisUnavailable
from databus_core.leases.kubernetes import KubernetesLease, connect_kubernetes
from databus_core.leases.redis import RedisLease

pytestmark = CANCELLED_HANDSHAKES


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

"""A release on a real cluster: each test goes on where the one before it has ended, while a ledger is written.

At the end every change is in Kafka once and in order.
"""

import asyncio
import json
import time
from collections.abc import Callable

import pytest

from chart.kubernetes import POLL_SECONDS, CommandFailed, Namespace
from chart.release import DUMP_API_KEY, NAME, RENEW, Release, is_ready, pod_of
from chart.workload import Workload
from common.waiting import cancelled, eventually
from devstack import Server
from devstack.replication import run

ROLES = ("reader", "publisher")
#: prints a line in the terminal
Say = Callable[[str], None]
_NEW_PASSWORD = "second password"
#: prints what a URL returns, or why there is no answer
_GET = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": f"Bearer {sys.argv[2]}"})
try:
    print(urllib.request.urlopen(request, timeout=5).read().decode())
except OSError as error:
    print(error)
"""
#: connects to a host and a port, or fails
_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)"
#: downloads a file in several threads until this many seconds have passed, and prints the different lengths, and errors
_DOWNLOAD = """
import sys, threading, time, urllib.request
url, key, seconds = sys.argv[1:]
end, lengths = time.monotonic() + float(seconds), set()
def download():
    while time.monotonic() < end:
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
        try:
            lengths.add(len(urllib.request.urlopen(request, timeout=30).read()))
        except OSError as error:
            lengths.add(repr(error))
threads = [threading.Thread(target=download) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*lengths)
"""


async def test_a_release_that_could_not_work_is_not_installed(release: Release) -> None:
    with pytest.raises(CommandFailed, match="no-secret"):
        await release.apply({"sourcePassword": {"secretName": "no-secret"}})
    with pytest.raises(CommandFailed, match="no-kafka:9092"):
        await release.apply({"config": {"kafka": {"bootstrap_servers": ["no-kafka:9092"]}}})
    assert (await release.namespace.get("deployments"))["items"] == []


async def test_install(release: Release, workload: Workload, say: Say) -> None:
    begin = time.monotonic()
    await release.apply()
    say(f"installed in {time.monotonic() - begin:.0f} s")
    await release.test()
    workload.start()
    await workload.progress(1)


@pytest.mark.parametrize("role", ROLES)
async def test_another_pod_takes_over_when_the_active_one_is_killed(
    release: Release, workload: Workload, role: str, say: Say
) -> None:
    killed = await release.holder(role)
    assert killed in await release.pods(role)
    begin = time.monotonic()
    await release.kill(killed)

    async def has_taken_over() -> bool:
        return await release.holder(role) not in ("", killed)

    await eventually(has_taken_over, pause=POLL_SECONDS)
    taken = time.monotonic() - begin
    await workload.progress(1)
    arrived = time.monotonic() - begin
    say(f"{role}: another pod had the Lease after {taken:.1f} s, and changes arrived after {arrived:.1f} s")
    assert taken < 4 * RENEW
    await release.until_ready(role, 2)


async def test_an_upgrade_restarts_only_what_it_concerns_and_a_rollback_undoes_it(
    release: Release, workload: Workload
) -> None:
    first = release.revision
    before = [await release.pods(role) for role in ("reader", "dump-api", "publisher")]
    await release.apply({"config": {"publisher": {"topic_settings": {"retention.ms": "86400000"}}}})
    after = [await release.pods(role) for role in ("reader", "dump-api", "publisher")]
    assert [set(old) & set(new) for old, new in zip(before, after, strict=True)] == [
        set(before[0]),
        set(before[1]),
        set(),
    ]
    await release.test()
    await workload.progress()
    await release.rollback(first)
    assert not set(await release.pods("publisher")) & set(after[2])
    await release.test()
    await workload.progress()


async def test_an_upgrade_that_could_not_work_changes_nothing(release: Release, workload: Workload) -> None:
    before = await release.pods("publisher")
    wrong = {"config": {"kafka": {"bootstrap_servers": ["no-kafka:9092"]}}}
    with pytest.raises(CommandFailed, match="no-kafka:9092"):
        await release.apply(wrong)
    assert set(await release.pods("publisher")) == set(before)
    with pytest.raises(CommandFailed):  # the new pods never get ready, so the old ones stay
        await release.apply(wrong | {"check": {"enabled": False}}, seconds=30)
    pods = await release.pods("publisher")
    assert set(before) < set(pods)
    assert not any(is_ready(pods[new]) for new in pods.keys() - before.keys())
    await workload.progress()
    await release.kill(await release.holder("publisher"))  # it starts again with the configuration that it had
    await workload.progress()
    await release.rollback(release.revision)
    assert await release.until_ready("publisher", 2) == set(before)
    await workload.progress()


async def test_a_drain_evicts_one_pod_after_the_other(release: Release, workload: Workload) -> None:
    pods = [pod for role in ROLES for pod in (await release.pods(role)).values()]
    [node] = {pod["spec"]["nodeName"] for pod in pods}
    selector = f"app.kubernetes.io/instance={NAME},app.kubernetes.io/component in ({','.join(ROLES)})"
    words = ["drain", node, "--pod-selector", selector, "--delete-emptydir-data", "--timeout", "180s"]
    drain = asyncio.create_task(release.namespace.kubectl(*words))

    async def is_refused() -> bool:
        budgets = (await release.namespace.get("poddisruptionbudgets"))["items"]
        return all(budget["status"]["disruptionsAllowed"] == 0 for budget in budgets)

    try:
        await eventually(is_refused, pause=POLL_SECONDS)  # of each role one pod is evicted, and the other stays
        for role in ROLES:
            assert len(await release.pods(role)) == 2  # the new one finds no node
        await workload.progress()
    except BaseException:
        await cancelled(drain)
        raise
    finally:
        await release.namespace.kubectl("uncordon", node)
    await drain
    for role in ROLES:
        await release.until_ready(role, 2)
    assert not {pod["metadata"]["name"] for pod in pods} & {name for role in ROLES for name in await release.pods(role)}
    await workload.progress()


async def test_only_those_whom_the_network_policy_admits_reach_a_port(release: Release, servers: Namespace) -> None:
    for component, port in ("reader", 9101), ("publisher", 9102), ("dump-api", 8080):
        url = f"http://databus-{component}.{release.namespace.name}:{port}/metrics"
        assert "databus_ready" in await servers.python("client", _GET, url, "")
        assert "timed out" in await servers.python("stranger", _GET, url, "")
    publisher, kafka = await release.holder("publisher"), f"kafka.{servers.name}"
    await release.namespace.python(publisher, _CONNECT, kafka, "9092")
    with pytest.raises(CommandFailed, match="timed out"):
        await release.namespace.python(publisher, _CONNECT, kafka, "9094")


async def test_the_operations_page_names_the_active_pods(release: Release, servers: Namespace) -> None:
    url = f"http://databus-dump-api.{release.namespace.name}:8080/v1/pipeline/status"
    leaders = json.loads(await servers.python("client", _GET, url, DUMP_API_KEY))["leaders"]
    assert {role: pod_of(leaders[role]) for role in ROLES} == {role: await release.holder(role) for role in ROLES}


async def test_a_new_password_of_the_database(release: Release, workload: Workload, source: Server) -> None:
    await release.namespace.secret("source", password=_NEW_PASSWORD)
    await run(source, f"ALTER USER databus IDENTIFIED BY '{_NEW_PASSWORD}'")
    await release.namespace.kubectl("rollout", "restart", "deployment")
    await release.namespace.kubectl("rollout", "status", "deployment", "--timeout=300s")
    await workload.progress()


async def test_dumps_survive_their_pod(release: Release, servers: Namespace) -> None:
    dump = await _databus(release, servers, "dump", "create", "--wait")
    for pod in await release.pods("dump-api"):
        await release.namespace.kubectl("delete", "pod", pod, "--wait")
    await release.until_ready("dump-api", 1)
    shown = json.loads(await _databus(release, servers, "dump", "show", dump.strip(), "--json"))
    assert shown["state"] == "complete"
    await _databus(release, servers, "dump", "download", dump.strip(), "dump")
    assert "manifest.json" in await servers.kubectl("exec", "client", "--", "ls", "dump")


async def test_downloads_scale_the_dump_api(release: Release, workload: Workload, servers: Namespace, say: Say) -> None:
    await release.apply(
        {"dumpApi": {"autoscaling": {"enabled": True, "minReplicas": 1, "maxReplicas": 2, "cpuPercent": 50}}}
    )
    dump = json.loads(await _databus(release, servers, "dump", "create", "--wait", "--json"))
    largest = max(dump["files"], key=lambda file: file["bytes"])
    url = f"http://databus-dump-api.{release.namespace.name}:8080/v1/dumps/{dump['id']}/files/{largest['name']}"
    downloading = asyncio.create_task(servers.python("client", _DOWNLOAD, url, DUMP_API_KEY, "150"))
    begin = time.monotonic()
    await release.until_ready("dump-api", 2, seconds=180)
    say(f"a second dump-api was ready after {time.monotonic() - begin:.0f} s of downloads")
    assert (await downloading).split() == [str(largest["bytes"])]
    await workload.progress()


async def test_the_lake_equals_the_database(release: Release, workload: Workload) -> None:
    await release.apply({"sparkSink": {"enabled": True}}, seconds=600)  # on a small node its first batches take long
    await workload.finish()
    [sink] = await release.until_ready("spark-sink", 1)
    command = ["databus-spark-sink", "verify", *workload.mirrored]  # it waits until the sink has come so far
    shown = await release.namespace.kubectl("exec", sink, "--", *command)
    assert shown.count(": equal") == len(workload.mirrored)


async def test_nothing_stays_but_the_claims(release: Release, workload: Workload) -> None:
    await release.uninstall()
    await workload.stop()
    left = (await release.namespace.get("deployments,leases,services,jobs"))["items"]
    assert left == []
    claims = (await release.namespace.get("persistentvolumeclaims"))["items"]
    assert {claim["metadata"]["name"] for claim in claims} == {"dumps", "databus-spark-sink"}


async def _databus(release: Release, servers: Namespace, *words: str) -> str:
    """Run a command that asks dump-api, where its port is open for it."""
    url = f"http://databus-dump-api.{release.namespace.name}:8080"
    await servers.kubectl("exec", "client", "--", "sh", "-c", f"echo '{DUMP_API_KEY}' > key")
    words = (*words, "--url", url, "--api-key-file", "key")
    return await servers.kubectl("exec", "client", "--", "databus", *words)

"""The cluster, with servers in one namespace and the release in another."""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from string import Template

import pytest
from asyncmy.errors import MySQLError

from chart.kubernetes import Namespace, why_not
from chart.release import DUMP_API_KEY, PASSWORD, Release, image
from chart.workload import Workload
from common.waiting import eventually
from devstack import Server
from devstack.ports import free_ports
from devstack.replication import run
from devstack.server import at

_SERVERS = Path(__file__).with_name("servers.yaml")
_CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: dumps}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}
"""
_GRANTS = "SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT"


@pytest.fixture
def say(pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def say(text: str) -> None:
        with capsys.disabled():
            pytestconfig.get_terminal_writer().line(f"\n  {text}")

    return say


@pytest.fixture(scope="module")
async def servers() -> AsyncIterator[Namespace]:
    """MariaDB, Redis, Kafka, and two pods that run programs."""
    if reason := why_not():
        pytest.skip(reason)
    servers = Namespace(f"databus-servers-{secrets.token_hex(3)}")
    await servers.create("baseline")
    yield servers
    await servers.delete()


@pytest.fixture(scope="module")
async def ports(servers: Namespace) -> AsyncIterator[tuple[int, int]]:
    """The servers run; ports of this machine that lead to the database and to Kafka."""
    database, kafka = free_ports(2)
    values = {"NAMESPACE": servers.name, "PASSWORD": PASSWORD, "KAFKA_PORT": kafka, "IMAGE": image("cli")}
    manifest = Template(_SERVERS.read_text()).substitute(values)
    await servers.kubectl("apply", "--filename", "-", text=manifest)
    for what in ("deployment", "--for=condition=Available"), ("pod", "--for=condition=Ready"):
        await servers.kubectl("wait", "--all", "--timeout=300s", *what)
    async with servers.forwarded("mariadb", 3306, database), servers.forwarded("kafka", 9094, kafka):
        yield database, kafka


@pytest.fixture(scope="module")
def source(ports: tuple[int, int]) -> Server:
    return at("mariadb", "127.0.0.1", ports[0], "root", PASSWORD)


@pytest.fixture(scope="module")
async def workload(ports: tuple[int, int], source: Server) -> AsyncIterator[Workload]:
    """The account and the tables exist."""

    async def answers() -> bool:
        with suppress(OSError, MySQLError):
            await run(source, "SELECT 1")
            return True
        return False

    await eventually(answers)
    await run(source, f"CREATE USER databus IDENTIFIED BY '{PASSWORD}'", f"GRANT {_GRANTS} ON *.* TO databus")
    workload = Workload(source, at("kafka", "127.0.0.1", ports[1]))
    await workload.prepare()
    yield workload
    await workload.stop()


@pytest.fixture(scope="module")
async def release(servers: Namespace, workload: Workload) -> AsyncIterator[Release]:
    """A release that is not installed yet, in a namespace of its own, with its Secrets and a claim for dumps."""
    namespace = Namespace(f"databus-test-{secrets.token_hex(3)}")
    await namespace.create("restricted")
    await namespace.secret("source", password=PASSWORD)
    await namespace.secret("dump-api", key=DUMP_API_KEY)
    await namespace.kubectl("apply", "--filename", "-", text=_CLAIM)
    nodes = (await namespace.get("nodes"))["items"]
    node = next(node for node in nodes if not node["spec"].get("unschedulable") and not node["spec"].get("taints"))
    release = Release(namespace, servers, node["metadata"]["labels"]["kubernetes.io/hostname"])
    yield release
    await release.uninstall()
    await namespace.delete()

"""The order of test files, and fixtures for several levels: schemas, pipelines as processes, consumers of Kafka."""

import asyncio
import re
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from common.connections import Execute, connected
from common.fork_server import ForkServer, with_environment
from common.object_store import ObjectStoreServer
from common.pipelines import Changes, Consume, MakePipeline, RunService
from common.service_logs import unexpected
from devstack import Server
from devstack.jars import resolve
from devstack.pipeline import SERVICES, Pipeline, replicas

#: Groups of files that share expensive servers or a JVM. They take longest, so they begin first.
_TOGETHER = {
    "Spark": re.compile(r"tests/integration/test_(lake_\w+|spark_(?!sink_start)\w+|table_formats)\.py"),
    "secure servers": re.compile(r"tests/integration/secure/"),
    "servers that may be killed": re.compile(r"tests/faults/test_(kafka_stop|lost_redis|outages|storm|t29_)"),
    "demo": re.compile(r"tests/e2e/"),
}

#: A replica keeps its lease if the machine stands still for three seconds; one that is killed is replaced after 7.5.
_LEASE: dict[str, Any] = {"election": {"renew": "3s"}}


def _group(nodeid: str) -> str:
    file = nodeid.partition("::")[0]
    return next((name for name, files in _TOGETHER.items() if files.match(file)), file)


class _GroupScheduling(LoadFileScheduling):
    """Runs each file in one process, and all files of a group in the same one."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _GroupScheduling:
    return _GroupScheduling(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` deselects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the groups, in their order; tests marked `mysql_in_slow` are slow on MySQL if MariaDB has the same."""
    ids = {item.nodeid for item in items}
    for item in items:
        test, _, parameters = item.nodeid.partition("[")
        same = re.sub(r"\bmysql\b", "mariadb", parameters)
        if item.get_closest_marker("mysql_in_slow") and same != parameters and f"{test}[{same}" in ids:
            item.add_marker("slow")
    order = {name: number for number, name in enumerate(_TOGETHER)}
    items.sort(key=lambda item: order.get(_group(item.nodeid), len(order)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-cut", action="store_true", help="cut streams at every byte, not at a sample of them")
    parser.addoption("--table-format", choices=["delta", "iceberg"], default="delta", help="the lake's table format")


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest) -> Server:
    """Each kind of database in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
async def schema(source: Server) -> AsyncIterator[str]:
    """An empty schema of the test's own."""
    name = f"t_{secrets.token_hex(4)}"
    async with connected(source) as execute:
        await execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        yield name
        await execute(f"DROP DATABASE {name}")


@pytest.fixture
async def execute(source: Server, schema: str) -> AsyncIterator[Execute]:
    """Run statements in the test's schema."""
    async with connected(source) as run:
        await run(f"USE {schema}")
        yield run


@pytest.fixture
def sqlite_replica_url(tmp_path: Path) -> str:
    """The URL, for SQLAlchemy, of an empty database of the test's own; as the next three."""
    return f"sqlite:///{tmp_path}/replica.db"


@pytest.fixture
def postgresql_replica_url(postgresql: Server) -> Iterator[str]:
    name = f"r_{secrets.token_hex(4)}"
    with psycopg.connect(f"{postgresql.url}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield f"{postgresql.url}/{name}".replace("postgresql:", "postgresql+psycopg:")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def mysql_replica_url(mysql: Server) -> Iterator[str]:
    yield from _replica_schema(mysql)


@pytest.fixture
def mariadb_replica_url(mariadb: Server) -> Iterator[str]:
    yield from _replica_schema(mariadb)


def _replica_schema(server: Server) -> Iterator[str]:
    """Make a schema whose own character set lacks most characters."""
    name = f"r_{secrets.token_hex(4)}"
    account = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    with closing(pymysql.connect(**account)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET latin1")
        yield f"{server.url}/{name}".replace("mysql:", f"{server.kind}+pymysql:")
        cursor.execute(f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def jars(pytestconfig: pytest.Config) -> Path:
    """The connectors of the sink, downloaded if necessary."""
    return resolve(pytestconfig.rootpath / "services/spark-sink/pom.xml")


@pytest.fixture(scope="session")
async def object_store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ObjectStoreServer]:
    """A server with the API of S3, with the bucket `lake`."""
    server = ObjectStoreServer(tmp_path_factory.mktemp("s3"))
    server.start()
    try:
        await server.wait()
        server.make_bucket("lake")
        yield server
    finally:
        server.kill()


@pytest.fixture
def bucket(object_store: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty prefix in S3; this process may use it."""
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://lake/{secrets.token_hex(4)}"


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer() as server:
        yield server


@pytest.fixture
def run_service(fork_server: ForkServer) -> RunService:
    async def run(service: str, config: Path, *arguments: str) -> tuple[int, str]:
        program = Path(sys.executable).parent / f"databus-{service}"
        return await asyncio.to_thread(fork_server.run, program, "--config", config, *arguments)

    return run


@pytest.fixture
def make_pipeline(
    tmp_path: Path, redis_server: Server, kafka: Server, fork_server: ForkServer
) -> Iterator[MakePipeline]:
    """Make pipelines of the test's own; their services end with the test, and their logs are checked.

    A service that is started after one was killed takes over as soon as the lease of that one has expired: soon.
    """
    made: list[Pipeline] = []

    def make(
        source: Server,
        schema: str,
        /,
        tables: str = "*",
        environment: Mapping[str, str] | None = None,
        **overrides: dict[str, Any],
    ) -> Pipeline:
        name = f"p{secrets.token_hex(4)}"
        reader = {"server_id": secrets.randbelow(2**31) + 1000} | _LEASE
        sections = {"reader": reader, "publisher": _LEASE}
        sections |= {section: sections.get(section, {}) | values for section, values in overrides.items()}
        pipeline = Pipeline(
            tmp_path / name,
            source=source,
            redis=redis_server,
            kafka=kafka,
            name=name,
            include=(f"{schema}.{tables}",),
            overrides=sections,
            launch=with_environment(environment) if environment else fork_server.spawn,
        )
        made.append(pipeline)
        return pipeline

    yield make
    started = [(p, service, replica) for p in made for service in SERVICES for replica in replicas(p.home, service)]
    for pipeline, service, replica in started:
        pipeline.kill(service, replica)
    assert [line for p, service, replica in started for line in unexpected(p.log(service, replica))] == []


@pytest.fixture
async def changes(kafka: Server) -> AsyncIterator[Consume]:
    """Consume topics from their beginning; they are created first, so that no test waits for the publisher to do so."""
    consumers: list[AIOKafkaConsumer] = []
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await admin.start()

    async def consume(*topics: str, partitions: int = 1, **settings: str) -> Changes:
        await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=settings) for topic in topics])
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka.url, group_id=None, isolation_level="read_committed")
        consumers.append(consumer)
        await consumer.start()
        assigned = [TopicPartition(topic, partition) for topic in topics for partition in range(partitions)]
        consumer.assign(assigned)
        await consumer.seek_to_beginning(*assigned)
        return Changes(consumer)

    yield consume
    for consumer in consumers:
        await consumer.stop()
    await admin.close()

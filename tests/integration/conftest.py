"""Pairs of databases, live tables, a Spark session, and publisher and dump API in this process."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from pyspark.sql import SparkSession
from redis.asyncio import Redis

from common.connections import Execute
from common.pipelines import Consume, MakePipeline
from common.spark import FEW_ROWS
from common.waiting import cancelled, eventually
from databus_binlog import Position
from databus_cli.__main__ import main
from databus_core.names import progress_topic
from databus_core.pipe import ReaderEnd
from databus_core.progress import Progress, encode_progress
from databus_core.settings import Settings
from databus_core.settings import Spark as SparkSection
from databus_dump_api.__main__ import Service
from databus_spark import delta, iceberg_session
from databus_spark.formats import FORMATS
from databus_spark.layout import Layout
from databus_spark_sink.session import open_session
from devstack import Server, Stack
from devstack.process import ENVIRONMENT
from devstack.replication import Pair
from devstack.replication import run as run_statements
from integration.dump_api import Api, StartedHealth, create_topic, produce
from integration.host_account import CREATE_ACCOUNT
from integration.live_tables import Begin, Live
from integration.publisher_in_process import Publisher, Run, Source
from integration.sink import Sink
from integration.sink_peers import DumpServer, SamplePublisher, serving


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Servers of the module's own: they may be configured or killed, and their files cut."""
    stack = Stack(tmp_path_factory.mktemp("own"), own=True)
    yield stack
    stack.discard()


@pytest.fixture(params=["mariadb", "mysql"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Pair]:
    """Each kind of database in turn, with a table shop.t that has one row."""
    pair = Pair(tmp_path / "pair", request.param)
    await pair.start()
    await run_statements(
        pair.primary,
        *CREATE_ACCOUNT,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (id INT PRIMARY KEY)",
        "INSERT INTO shop.t VALUES (1)",
    )
    await pair.caught_up()
    yield pair
    await pair.discard()


@pytest.fixture
async def begin(
    make_pipeline: MakePipeline, source: Server, schema: str, changes: Consume, execute: Execute
) -> AsyncIterator[Begin]:
    """Create tables with two rows, and start a pipeline, of which all rows are published."""
    following: list[asyncio.Task[None]] = []

    async def start(tables: dict[str, str], **settings: Any) -> Live:
        for table, rest in tables.items():
            await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9)) {rest}")
            await execute(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
        live = Live(make_pipeline(source, schema, **{"reader": {"start": "snapshot"}} | settings), schema)
        consumer = await changes(*(f"{live.pipeline.name}.{schema}.{each}" for each in tables))
        following.append(asyncio.create_task(live.follow(consumer)))
        await asyncio.to_thread(live.pipeline.start_all, "publisher", "reader")
        await live.equals(*tables)
        await eventually(live.has_loaded)
        return live

    yield start
    for task in following:
        await cancelled(task)


@pytest.fixture
def configured(kafka: Server, redis_server: Server, tmp_path: Path) -> Callable[..., Settings]:
    name = f"p{secrets.token_hex(4)}"

    def make(**publisher: Any) -> Settings:
        values = {
            "name": name,
            "redis": {"url": redis_server.url},
            "kafka": {"bootstrap_servers": [kafka.url]},
            "publisher": {"claim_checks": f"file://{tmp_path}/claims"} | publisher,
        }
        (tmp_path / "databus.yaml").write_text(json.dumps(values))
        return Settings(**values)

    return make


@pytest.fixture
async def run(redis_server: Server) -> AsyncIterator[Run]:
    started: list[Publisher] = []
    async with Redis.from_url(redis_server.url) as redis:

        async def begin(settings: Settings, *, start: bool = True) -> tuple[Publisher, Source]:
            publisher = Publisher(settings)
            started.append(publisher)
            source = Source(ReaderEnd(redis, settings.name))
            await source.claim(start=start)
            return publisher, source

        yield begin
        for publisher in started:
            await publisher.stop()


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config, jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session that is fast with few rows. It also has what the other table format needs."""
    folder = tmp_path_factory.mktemp("spark")
    table_format = pytestconfig.getoption("table_format")
    layout = Layout((folder / "lake").as_uri())
    other = delta.CONFIGURATION if table_format == "iceberg" else iceberg_session.configuration(layout.root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", ENVIRONMENT["JDK_JAVA_OPTIONS"])
        spark = open_session(SparkSection(jars=jars, conf=FEW_ROWS | other, table_format=table_format), layout)
    yield spark
    spark.stop()


@pytest.fixture
def table_format(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The table format of the lake; `integration.sink_peers.on_both_formats` runs a test on both."""
    of_session = request.config.getoption("table_format")
    found = str(getattr(request, "param", of_session))
    monkeypatch.setitem(FORMATS, of_session, FORMATS[found])
    return found


@pytest.fixture
async def sink(
    spark: SparkSession, kafka: Server, jars: Path, tmp_path: Path, table_format: str
) -> AsyncIterator[Sink]:
    name = f"sink-{secrets.token_hex(3)}"
    dumps = DumpServer(tmp_path, name)
    async with serving(dumps) as url, SamplePublisher(name, kafka.url) as publisher:
        section = {"lake": (tmp_path / "lake").as_uri(), "tables": ["shop.*"], "jars": jars, "heal": "manual"}
        section["table_format"] = table_format
        yield Sink(
            spark,
            Settings(name=name, kafka={"bootstrap_servers": [kafka.url]}, dumps={"url": url}, spark=section),
            publisher,
            dumps,
        )


@pytest.fixture
async def admin(kafka: Server) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
    await client.start()
    yield client
    await client.close()


@pytest.fixture
def dead_letters(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Awaitable[Any]]:
    async def command(*arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        capfdbinary.readouterr()
        code = await asyncio.to_thread(main, ["deadletter", *arguments, "--config", str(tmp_path / "databus.yaml")])
        out, err = capfdbinary.readouterr()
        return code, [json.loads(line) for line in out.splitlines()] if "--json" in arguments else [], err.decode()

    return command


@pytest.fixture
async def serve(
    source: Server, schema: str, redis_server: Server, kafka: Server, tmp_path: Path
) -> AsyncIterator[Callable[..., Any]]:
    """Run dump-api for the test's schema in this process; with `started`, the pipeline already has a position."""

    @asynccontextmanager
    async def running(started: bool = True, **overrides: dict[str, Any]) -> AsyncIterator[Api]:
        if started:
            await create_topic(kafka, progress_topic(schema))
            await produce(kafka, progress_topic(schema), encode_progress(Progress(Position())))
        login = {"hosts": [f"{source.host}:{source.port}"], "user": source.user, "password": source.password}
        settings = Settings.model_validate(
            {
                "name": schema,
                "source": login | {"include": [f"{schema}.*"], "exclude": ["*.hidden"]} | overrides.get("source", {}),
                "redis": {"url": redis_server.url},
                "kafka": {"bootstrap_servers": [kafka.url]},
                "dumps": {"storage": f"file://{tmp_path}"} | overrides.get("dumps", {}),
                "publisher": overrides.get("publisher", {}),
            }
        )
        service, health = Service(), StartedHealth()
        app = service.app(settings, health)
        work = asyncio.create_task(service.run(settings, health))
        up = asyncio.create_task(health.event.wait())
        await asyncio.wait([work, up], return_when=asyncio.FIRST_COMPLETED)
        assert up.done(), work.exception()
        try:
            async with Api(transport=httpx.ASGITransport(app), base_url="http://dumps") as api:
                api.settings, api.app = settings, app
                yield api
        finally:
            await cancelled(work)
        assert work.cancelled(), work.exception()

    yield running


@pytest.fixture
async def api(serve: Callable[..., Any]) -> AsyncIterator[Api]:
    async with serve() as running:
        yield running


@pytest.fixture
async def dump(api: Api, execute: Execute) -> dict[str, Any]:
    """The manifest of a dump of one table with one row."""
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    return await api.take_dump()

"""The pipeline of the night drill: two replicas of reader and publisher, dump-api, a load, and a Prometheus."""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import httpx
from aiokafka import TopicPartition
from aiokafka.admin import NewTopic

from common.privileges import listed
from common.waiting import eventually
from databus_core.kafka_client import admin as admin_of
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from devstack import Stack
from devstack.pipeline import Pipeline
from devstack.replication import run
from faults.checker import Checker
from faults.drill.replicas import Replica, Replicas
from faults.ledger import Book, Ledger
from faults.prometheus import Alerts, configured
from faults.proxy import Proxy
from faults.volume import volume
from faults.writer import Pace, Writer
from reference import metrics as reference

#: name of the pipeline and of the schema, and the account of its services
NAME, ACCOUNT = "shop", "drill"
_REPLICAS = (
    Replica("reader", 0),
    Replica("reader", 1),
    Replica("publisher", 0),
    Replica("publisher", 1),
    Replica("dump-api", 0),
)
#: about 50 rows a second; the writer goes on whatever happens to the pipeline
_PACE = Pace(pause=0.4, ahead=float("inf"), two_phases=0)
#: seconds between two scrapes, and between two evaluations of the rules
_EVERY = 5
#: rows of a table that does not change, so that dumps and loads take a while
_ARCHIVE_ROWS = 60_000
_VOLUME = "2g"
_FRESH_SECONDS = 5.0
_PATIENCE_SECONDS = 600.0


class Rig:
    """The pipeline with its servers, which the caller stops."""

    def __init__(self, home: Path, stack: Stack) -> None:
        self._home = home
        self._stack = stack
        self.source, self.redis, self.kafka = (stack.start(kind) for kind in ("mariadb", "redis", "kafka"))
        *_, behind, front = stack.ports("kafka")
        self.kafka_proxy = Proxy(behind, front)
        self.storage = home / "dumps"
        self.storage.mkdir(parents=True)
        password = "drill-only"
        self._account = [
            line.replace("PASSWORD", password).replace("databus@", f"{ACCOUNT}@") for line in listed("sql", NAME, NAME)
        ]
        self.pipeline = Pipeline(
            home / "pipeline",
            source=replace(self.source, user=ACCOUNT, password=password),
            redis=self.redis,
            kafka=replace(self.kafka, port=front, url=self.kafka.url.replace(str(self.kafka.port), str(front))),
            name=NAME,
            include=(f"{NAME}.*",),
            overrides=self._settings(),
        )
        self.replicas = Replicas(self.pipeline, _REPLICAS)
        self.writer = Writer(Ledger(0, seed=1), NAME, lambda: self.source, Random(1), _PACE)
        self.checker = Checker([self.writer])
        self.alerts: Alerts

    def _settings(self) -> dict[str, dict[str, Any]]:
        dumps = {
            "storage": f"file://{self.storage}",
            "schedules": [{"name": "often", "every": "4m"}],
            "rows_per_second": 20_000,
        }
        return {"log": {"format": "json"}, "backfill": {"keyless_limit": "1KiB"}, "dumps": dumps}

    @property
    def books(self) -> Sequence[Book]:
        """The tables of the ledger."""
        return self.writer.ledger.books

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run everything. After the block, wait for all messages and compare the tables. Raises Violation or Stuck."""
        async with AsyncExitStack() as exits:
            exits.enter_context(volume(self.storage, _VOLUME))
            await self.kafka_proxy.start()
            exits.push_async_callback(self.kafka_proxy.stop)
            exits.push_async_callback(self.replicas.discard)
            await self._prepare()
            urls = [self.pipeline.url(*replica) for replica in self.replicas.all]
            rules = reference.ALERTS.read_text()
            prometheus = self._stack.start("prometheus", configured(self._home, urls, rules, every=_EVERY))
            client = await exits.enter_async_context(httpx.AsyncClient(base_url=prometheus.url, timeout=20))
            self.alerts = Alerts(client)
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(self.replicas.run()),
                    tasks.create_task(self.checker.follow(self.kafka, self._partitions())),
                ]
                writing = tasks.create_task(self.writer.run())
                await self.checker.progress(10, _PATIENCE_SECONDS)
                yield
                while any(book.left_out is not None for book in self.books):
                    await self.checker.progress(1, _PATIENCE_SECONDS)
                self.writer.finish()
                await writing
                await self.checker.complete(_PATIENCE_SECONDS)
                for task in background:
                    task.cancel()
            await self.checker.compare(self.source, NAME)

    async def _prepare(self) -> None:
        """Start the services over the ledger's empty tables and a table with rows."""
        await run(
            self.source,
            f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4",
            *self._account,
            f"USE {NAME}",
            f"CREATE TABLE {NAME}.archive (id INT PRIMARY KEY, text VARCHAR(400) CHARACTER SET ascii) "
            f"AS SELECT seq AS id, HEX(RANDOM_BYTES(100)) AS text FROM seq_1_to_{_ARCHIVE_ROWS}",
        )
        await self.writer.create()
        async with admin_of(load(self.pipeline.config).kafka) as admin:
            await admin.create_topics([NewTopic(each.topic, 1, 1) for each in self._partitions()])
        await self.replicas.start("reader", "publisher", "dump-api")
        await self.replicas.ready()

    def _partitions(self) -> list[TopicPartition]:
        return [TopicPartition(f"{NAME}.{NAME}.{book.name}", 0) for book in self.books]

    async def type(self, command: str) -> tuple[int, str]:
        """Run a `databus` command with the pipeline's configuration; return its exit code and its output."""
        program, *arguments = shlex.split(command)
        path = Path(sys.executable).parent / program
        process = await asyncio.create_subprocess_exec(
            path,
            *arguments,
            "--config",
            self.pipeline.config,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode()

    async def settled(self) -> None:
        """Wait until the first dump is there, and no alert is left of the start."""

        async def is_quiet() -> bool:
            has_dump = await self.alerts.values("databus_dump_newest_timestamp_seconds > 0")
            return bool(has_dump) and not await self.alerts.active()

        await eventually(is_quiet, seconds=_PATIENCE_SECONDS, pause=1)

    def may_leave_out(self) -> None:
        """Note that changes of all tables may be left out from now on, until the pipeline works."""
        for book in self.books:
            book.left_out = float("inf")

    async def works(self) -> bool:
        """Return whether all replicas are ready, Kafka has everything, and no table is loaded or in doubt."""
        if not all(status == httpx.codes.OK for status, _ in (await self.replicas.readiness()).values()):
            return False
        fresh = await self.alerts.values('min by (stage) (databus_freshness_seconds{stage=~"reader|publisher"})')
        if len(fresh) != len(("reader", "publisher")) or max(fresh) > _FRESH_SECONDS:
            return False
        states, _ = await read_states(load(self.pipeline.config))
        return not states.doubts and not states.unfinished()

    async def until_works(self) -> None:
        """Wait until the pipeline works, and a transaction that begins afterwards is in Kafka."""
        for pause in (_EVERY, 0):  # what Prometheus says may be that old
            await eventually(self.works, seconds=_PATIENCE_SECONDS, pause=1)
            await asyncio.sleep(pause + 1)
        for book in self.books:
            if book.left_out is not None:
                book.ends_leaving_out()
        await self.checker.progress(1, _PATIENCE_SECONDS)

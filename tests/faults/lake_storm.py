"""The system under the lake's storm: all services over a database whose rows and tables change at random.

Services and Spark's executors are killed meanwhile, a table is loaded again, and the database fails over. At the end
of a round, each mirror has to equal its table; the sink's own command `verify` must find that, too.
"""

import asyncio
import json
import secrets
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from cluster.servers import SparkCluster
from common.waiting import eventually
from databus_core.settings import load
from databus_spark_sink.loads.requests import FAILED
from devstack import Server
from devstack.demo import observe
from devstack.demo.compare import compare
from devstack.pipeline import SERVICES, Pipeline, Service, stop_services
from devstack.replication import Pair
from devstack.server import DevstackError
from faults.checker import Stuck
from faults.lake_load import FENCE, NAMES, Load, Report
from faults.lake_reader import LakeReader

_EXECUTOR = "executor"
_VICTIMS = ("spark-sink", "spark-sink", "spark-sink", "publisher", "reader")
#: a sink that catches up on a busy machine takes long
_PATIENCE_SECONDS = 600
#: an executor of a cluster whose drivers are killed all the time
_ON_CLUSTER = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class LakeStorm:
    """One pipeline and its lake. The servers are already running; the caller stops them.

    `servers` are the pair of databases, the second a replica of the first, Redis and Kafka.
    """

    def __init__(
        self,
        home: Path,
        servers: tuple[Pair, Server, Server],
        reader: LakeReader,
        seed: int,
        partitions: int = 1,
        cluster: SparkCluster | None = None,
    ) -> None:
        self._pair, redis, self._kafka = servers
        self._reader = reader
        self._cluster = cluster
        self._random = Random(seed)
        self._partitions = partitions
        self.report = Report()
        self._round = 0
        self._load = Load(self._pair.primary, f"storm_{secrets.token_hex(3)}", self.report)
        lease = {"election": {"renew": "1s"}}
        spark = {"jars": str(reader.jars), "trigger": 1, "table_format": reader.table_format}
        if cluster:
            spark |= {"master": cluster.url, "conf": _ON_CLUSTER}
        self.pipeline = Pipeline(
            home,
            source=self._pair.primary,
            redis=redis,
            kafka=self._kafka,
            name=self._load.schema.replace("_", "-"),
            include=(f"{self._load.schema}.*",),
            overrides={
                "source": {"hosts": [f"{server.host}:{server.port}" for server in self._pair.servers]},
                "reader": lease,
                "publisher": lease | {"partition_by": "primary_key", "partitions": partitions},
                "spark": spark,
            },
        )

    async def prepare(self) -> None:
        """Create topics and tables with some rows, and start the services; the sink loads a dump."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self._kafka.url)
        await admin.start()
        topics = [f"{self.pipeline.name}.{self._load.schema}.{table}" for table in NAMES]
        await admin.create_topics([NewTopic(topic, self._partitions, 1) for topic in topics])
        await admin.close()
        await self._load.create_tables(self._random)
        await asyncio.to_thread(self.pipeline.start_all, *SERVICES)

    async def close(self) -> None:
        """Stop the services and remove the tables."""
        await asyncio.to_thread(stop_services, self.pipeline.home)
        await self._load.drop_tables()

    async def round(
        self,
        transactions: int,
        statements: int,
        pause: float = 0.05,
        catch_up: float = 40,
        *,
        fail_over: bool = False,
        reset_to: str = "",
    ) -> None:
        """Run random transactions and statements on tables while services are killed, and compare all tables.

        After the load, the database fails over and the pipeline is reset if so wished, and the sink is still killed for
        `catch_up` seconds.
        """
        self._round += 1
        seconds = transactions * pause
        writers = self._random.randint(1, 3)
        async with asyncio.TaskGroup() as tasks:
            killing = tasks.create_task(self._kill(Random(self._random.random()), _VICTIMS))
            work = [
                self._load.change_rows(Random(self._random.random()), transactions // writers, pause)
                for _ in range(writers)
            ]
            changing = Random(self._random.random())
            await asyncio.gather(
                *work,
                self._load.change_tables(changing, statements, seconds),
                self._load_again(self._random.random() * seconds),
                self._write_large_row(self._random.random() * seconds),
            )
            killing.cancel()
        if fail_over:
            await self._fail_over()
        if reset_to:
            await self._reset(reset_to)
        with suppress(TimeoutError):  # a sink that catches up has the most to lose
            async with asyncio.timeout(catch_up):
                await self._kill(Random(self._random.random()), ("spark-sink",))
        await self._settle()
        await self._compare()
        await self._replay()
        await self._operate("databus-spark-sink", "verify")

    # --- faults -------------------------------------------------------------------------------------------------------

    async def _kill(self, random: Random, victims: Sequence[str]) -> None:
        """Kill services at random moments and start them again; kill executors, which Spark replaces."""
        while True:
            await asyncio.sleep(random.uniform(1, 25))
            if self._cluster and random.random() < 0.5:
                with suppress(DevstackError, IndexError):  # it has just ended; or there is none
                    random.choice(list(self._cluster.executors())).kill()
                    self.report.faults[_EXECUTOR] += 1
                continue
            victim: Any = random.choice(victims)
            self.pipeline.kill(victim)  # not in a thread: whoever cancels this finds the service started again
            self.report.faults[victim] += 1
            self.pipeline.spawn(victim)
            await self._ready(victim, random.choice([0, 5, 30]))

    async def _load_again(self, after: float) -> None:
        """Request, as an operator does, that the sink loads a table again from a new dump."""
        await asyncio.sleep(after)
        table = f"{self._load.schema}.t{self._random.randrange(7)}"
        await self._operate("databus-spark-sink", "resync", table, "--no-wait")

    async def _write_large_row(self, after: float) -> None:
        """Write a row that becomes a dead letter, so that the sink has to load its table again."""
        await asyncio.sleep(after)
        await self._load.write_large_row(self._round)
        self.report.faults["dead letter"] += 1

    async def _operate(self, program: str, command: str, *arguments: str) -> None:
        """Run a command, which must succeed. It does not wait for the executors of the sink."""
        config, log = self.pipeline.home / "operator.yaml", self.pipeline.home / "operator.log"
        settings = json.loads(self.pipeline.config.read_text())
        settings["spark"] |= {"master": "local[1]", "conf": {}}
        config.write_text(json.dumps(settings))
        path = Path(sys.executable).parent / program
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                path, command, *arguments, "--config", str(config), stdout=output, stderr=output
            )
        if code := await process.wait():
            self.report.failures.append(f"round {self._round}: {command} ended with {code}; see {log}")
        self.report.faults[command] += 1

    async def _fail_over(self) -> None:
        """Kill the primary, which the replica has caught up with, and let the replica take its place."""
        await self._pair.caught_up()
        former = self._pair.primary
        await self._pair.kill(former)
        await self._pair.promote()
        await self._pair.restart(former)
        await self._pair.follow()
        self._load.server = self._pair.primary
        self.report.faults["failover"] += 1

    async def _reset(self, to: str) -> None:
        """Change rows, and tables too, while reader and publisher are stopped; then reset the pipeline, as an operator.

        `to` is `latest`, so that these changes are never published, or `snapshot`, so that all rows are. After a
        snapshot, nothing shows that a table is gone, so all statements on tables are published before.
        """
        if to == "snapshot":
            await observe.until_published(self._pair.primary, self.pipeline)
        for service in ("reader", "publisher"):
            if self.pipeline.pid(service):
                self.pipeline.kill(service)
        await self._load.change_rows(Random(self._random.random()), 40)
        if to == "latest":
            await self._load.change_tables(Random(self._random.random()), 6, 1)
        await self._operate("databus", "pipeline", "reset", "--to", to, "--yes")
        for service in ("reader", "publisher"):
            self.pipeline.spawn(service)
        self.report.faults[f"reset to {to}"] += 1

    async def _ready(self, service: Service, seconds: float) -> bool:
        """Wait until a service is ready, or for some time: a sink that has much to catch up takes long."""
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            with suppress(httpx.TransportError):
                if (await asyncio.to_thread(self.pipeline.get, service, "/readyz")).status_code == httpx.codes.OK:
                    return True
            await asyncio.sleep(0.2)
        return False

    async def _settle(self) -> None:
        """Wait until everything is in the lake."""
        for service in SERVICES:
            if not self.pipeline.pid(service):
                self.pipeline.spawn(service)
            if not await self._ready(service, _PATIENCE_SECONDS):
                raise Stuck(f"{service} is not ready after {_PATIENCE_SECONDS} s; see {self.pipeline.log(service)}")
        await self._load.fence(self._round)
        await eventually(self._has_all, seconds=_PATIENCE_SECONDS)
        with suppress(TimeoutError):  # the comparison tells why
            await eventually(self._none_parked, seconds=_PATIENCE_SECONDS)
        await observe.until_in_lake(self.pipeline)

    async def _has_all(self) -> bool:
        """Return whether the sink has the fence and has loaded all tables; a request for one that is gone fails."""
        await asyncio.sleep(1)
        fence = self.pipeline.lake / "mirror" / self._load.schema / FENCE
        return (
            fence.exists()
            and any(row["id"] == self._round for row in self._reader.rows(fence))
            and all(text.startswith(FAILED) for _, text in self._requests())
        )

    async def _none_parked(self) -> bool:
        """Return whether the sink has loaded all tables again that it had parked."""
        await asyncio.sleep(1)
        return not await asyncio.to_thread(self._reader.parked_tables, self.pipeline.lake)

    def _requests(self) -> list[tuple[str, str]]:
        """Return table and text of each request to load a table again."""
        files = (self.pipeline.lake / "_databus" / "requests").glob(f"{self._load.schema}.*.*")
        with suppress(FileNotFoundError):  # the sink removes a request when it has loaded the table
            return [(file.name.split(".")[1], file.read_text()) for file in files]
        return [("", "")]  # look again

    async def _replay(self) -> None:
        """Require that the change log of some tables makes their mirrors again."""
        rules, lake = load(self.pipeline.config).publisher.rules, self.pipeline.lake
        parked = self._reader.parked_tables(lake)
        for table in sorted(await self._load.present() - parked.keys()):
            name = self._load.schema, table
            found = await asyncio.to_thread(self._reader.replay, lake, name, rules, self._random)
            self.report.faults["replay"] += found is not None
            if found and not found.equal:
                self.report.failures.append(f"round {self._round}: {table} replayed: {found.counts}")

    # --- the comparison -----------------------------------------------------------------------------------------------

    async def _compare(self) -> None:
        schema, lake = self._load.schema, self.pipeline.lake
        present = await self._load.present()
        log = self.pipeline.log("spark-sink").read_text().splitlines()
        if not self.report.faults["reset to latest"]:  # else no statement of the load is a reason for that
            known = "its earlier rows are not in the lake"
            self.report.failures += [line for line in log if known in line]
        failed = {table for table, text in self._requests() if text.startswith(FAILED)}
        self.report.failures += [f"{table} was not loaded again" for table in sorted(failed & present)]
        parked = self._reader.parked_tables(lake)
        self.report.failures += [f"round {self._round}: {table} is parked: {parked[table]}" for table in parked]
        for table in sorted({*NAMES} - parked.keys()):
            mirror = lake / "mirror" / schema / table
            if table in present:
                found = await compare(self._pair.primary, lake, table, schema, self._reader.rows)
                self.report.tables += 1
                self.report.rows += found.rows
                if not found.equal:
                    self.report.failures.append(f"round {self._round}: {found}")
            elif mirror.exists() and (rows := self._reader.rows(mirror)):
                self.report.failures.append(f"round {self._round}: {table} is gone, its mirror has {len(rows)} rows")

"""The system under the lake's storm: all services over a database whose rows and tables change at random.

Services are killed meanwhile. At the end of a round, each mirror has to equal its table.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import asyncmy
import httpx
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from asyncmy.errors import MySQLError

from devstack import Server
from devstack.demo import observe
from devstack.demo.compare import compare
from devstack.pipeline import SERVICES, Pipeline, Service, stop_services
from faults.checker import Stuck
from faults.lake_columns import Column
from faults.lake_reader import parked_tables, read_rows
from faults.lake_statements import alter_table, change_tables, create_table, row_statements

_TABLES = tuple(f"t{number}" for number in range(7))
#: names to which tables are renamed
_SPARE = ("s0", "s1")
_ALL = (*_TABLES, *_SPARE, *(f"{name}_old" for name in (*_TABLES, *_SPARE)))
#: its row is the last one of a round: when the lake has it, it has everything
_FENCE = "fence"
_VICTIMS: tuple[Service, ...] = ("spark-sink", "spark-sink", "spark-sink", "publisher", "reader")
#: a sink that catches up on a busy machine takes long
_PATIENCE_SECONDS = 600
_LOGIN: dict[str, Any] = {"autocommit": True, "charset": "utf8mb4"}
_SESSION = "SET time_zone = '+00:00', lock_wait_timeout = 5, innodb_lock_wait_timeout = 3"


@dataclass
class Report:
    """What has happened."""

    transactions: int = 0
    row_statements: int = 0
    #: the first words of statements on tables that were executed → how often
    ddl: Counter[str] = field(default_factory=Counter)
    #: code and text of the database's error → how often
    refused: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    tables: int = 0
    rows: int = 0
    failures: list[str] = field(default_factory=list)


class LakeStorm:
    """One pipeline and its lake. The servers are already running; the caller stops them."""

    def __init__(
        self,
        home: Path,
        servers: tuple[Server, Server, Server],
        jars: Path,
        seed: int,
        partitions: int = 1,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.source, redis, self._kafka = servers
        self._random = Random(seed)
        self._partitions = partitions
        self._say = say
        self.report = Report()
        self._round = 0
        self.schema = f"storm_{secrets.token_hex(3)}"
        lease = {"election": {"renew": "1s"}}
        self.pipeline = Pipeline(
            home,
            source=self.source,
            redis=redis,
            kafka=self._kafka,
            name=self.schema.replace("_", "-"),
            include=(f"{self.schema}.*",),
            overrides={
                "reader": lease,
                "publisher": lease | {"partition_by": "primary_key", "partitions": partitions},
                "spark": {"jars": str(jars), "trigger": 1},
            },
        )

    async def prepare(self) -> None:
        """Create topics and tables with some rows, and start the services; the sink loads a dump."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self._kafka.url)
        await admin.start()
        topics = [f"{self.pipeline.name}.{self.schema}.{table}" for table in (*_ALL, _FENCE)]
        await admin.create_topics([NewTopic(topic, self._partitions, 1) for topic in topics])
        await admin.close()
        connection = await self._connect("")
        async with connection:
            for text in (f"CREATE DATABASE {self.schema} CHARACTER SET utf8mb4", f"USE {self.schema}"):
                await _execute(connection, text)
            for table in _TABLES:
                await _execute(connection, create_table(self._random, table))
            await _execute(connection, f"CREATE TABLE {_FENCE} (id int PRIMARY KEY)")
        await self._write(self._random, 100)
        await asyncio.to_thread(self.pipeline.start_all, *SERVICES)

    async def close(self) -> None:
        """Stop the services and remove the tables."""
        await asyncio.to_thread(stop_services, self.pipeline.home)
        connection = await self._connect("")
        async with connection:
            await _execute(connection, f"DROP DATABASE {self.schema}")

    async def round(self, transactions: int, statements: int, pause: float = 0.05, catch_up: float = 40) -> None:
        """Run random transactions and statements on tables while services are killed, and compare all tables.

        For `catch_up` seconds after the load, the sink is killed on.
        """
        self._round += 1
        writers = self._random.randint(1, 3)
        async with asyncio.TaskGroup() as tasks:
            killing = tasks.create_task(self._kill(Random(self._random.random()), _VICTIMS))
            work = [
                tasks.create_task(self._write(Random(self._random.random()), transactions // writers, pause))
                for _ in range(writers)
            ]
            changing = Random(self._random.random())
            work.append(tasks.create_task(self._change_tables(changing, statements, transactions * pause)))
            await asyncio.gather(*work)
            killing.cancel()
        with suppress(TimeoutError):  # a sink that catches up has the most to lose
            async with asyncio.timeout(catch_up):
                await self._kill(Random(self._random.random()), ("spark-sink",))
        await self._settle()
        await self._compare()

    # --- the load -----------------------------------------------------------------------------------------------------

    async def _connect(self, schema: str | None = None) -> Any:
        server = self.source
        login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        connection = await asyncmy.connect(**login, **_LOGIN, database=self.schema if schema is None else schema)
        await _execute(connection, _SESSION)
        return connection

    async def _write(self, random: Random, transactions: int, pause: float = 0) -> None:
        """Run transactions that change rows."""
        connection = await self._connect()
        async with connection:
            for _ in range(transactions):
                await _execute(connection, "BEGIN")
                for _ in range(random.choice([1, 1, 2, 3, 6])):
                    await self._change_rows(connection, random)
                await _execute(connection, "ROLLBACK" if random.random() < 0.05 else "COMMIT")
                self.report.transactions += 1
                await asyncio.sleep(pause * random.random() * 2)

    async def _change_rows(self, connection: Any, random: Random) -> None:
        table = random.choice(_TABLES if random.random() < 0.9 else _ALL)
        if not (columns := await self._columns(connection, table)):
            return
        for text in row_statements(random, table, columns):
            self.report.row_statements += await self._try(connection, text)

    async def _change_tables(self, random: Random, statements: int, seconds: float) -> None:
        """Run statements on tables, spread over a time."""
        connection = await self._connect()
        async with connection:
            for _ in range(statements):
                await asyncio.sleep(random.random() * 2 * seconds / statements)
                rows = await _execute(connection, "SHOW TABLES")
                present = sorted({name for (name,) in rows} - {_FENCE})
                for table in sorted(set(_TABLES) - set(present)):
                    await self._change(connection, create_table(random, table))
                table = random.choice(present)
                if random.random() < 0.65:
                    texts = alter_table(random, table, await self._columns(connection, table))
                else:
                    free = [name for name in _SPARE if name not in present]
                    for name in _SPARE if not free else ():
                        await self._change(connection, f"DROP TABLE {name}")
                    texts = change_tables(random, [*set(present) & {*_TABLES}], free or _SPARE, self.source.kind)
                for text in texts:
                    await self._change(connection, text)

    async def _change(self, connection: Any, text: str) -> None:
        if await self._try(connection, text):
            self.report.ddl[" ".join(text.split()[:2])] += 1
        await _execute(connection, "COMMIT")

    async def _try(self, connection: Any, text: str) -> bool:
        """Execute a statement, which the database may refuse, as other connections change tables, too."""
        try:
            await _execute(connection, text)
        except MySQLError as error:
            self.report.refused[f"{text.split(maxsplit=1)[0]}: {error.args[0]}"] += 1
            if error.args[0] in (1064, 1054 if text.startswith("ALTER") else 1064):
                self.report.failures.append(f"{text}: {error}")
            return False
        return True

    async def _columns(self, connection: Any, table: str) -> list[Column]:
        rows = await _execute(
            connection,
            "SELECT column_name, column_type, data_type, is_nullable, column_key, character_maximum_length, "
            "datetime_precision FROM information_schema.columns "
            f"WHERE table_schema = '{self.schema}' AND table_name = '{table}' ORDER BY ordinal_position",
        )
        return [
            Column(name, _text(kind), _text(data), nullable == "YES", _text(key), int(length or 0), int(precision or 0))
            for name, kind, data, nullable, key, length, precision in rows
        ]

    # --- faults -------------------------------------------------------------------------------------------------------

    async def _kill(self, random: Random, victims: Sequence[Service]) -> None:
        """Kill services at random moments and start them again."""
        while True:
            await asyncio.sleep(random.uniform(1, 25))
            victim = random.choice(victims)
            self.pipeline.kill(victim)  # not in a thread: whoever cancels this finds the service started again
            self.report.kills[victim] += 1
            self.pipeline.spawn(victim)
            await self._ready(victim, random.choice([0, 5, 30]))

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
        connection = await self._connect()
        async with connection:
            await _execute(connection, f"INSERT INTO {_FENCE} VALUES ({self._round})")
        await observe.until_published(self.source, self.pipeline)
        await observe.until_in_lake(self.pipeline)

    # --- the comparison -----------------------------------------------------------------------------------------------

    async def _compare(self) -> None:
        connection = await self._connect()
        async with connection:
            present = {name for (name,) in await _execute(connection, "SHOW TABLES")}
        parked = parked_tables(self.pipeline.lake)
        self.report.failures += [f"round {self._round}: {table} is parked: {parked[table]}" for table in parked]
        for table in sorted({*_ALL, _FENCE} - parked.keys()):
            mirror = self.pipeline.lake / "mirror" / self.schema / table
            if table in present:
                found = await compare(self.source, self.pipeline.lake, table, self.schema, read_rows)
                self.report.tables += 1
                self.report.rows += found.rows
                if not found.equal:
                    self.report.failures.append(f"round {self._round}: {found}")
            elif mirror.exists() and (rows := read_rows(mirror)):
                self.report.failures.append(f"round {self._round}: {table} is gone, its mirror has {len(rows)} rows")


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


async def _execute(connection: Any, text: str) -> Sequence[tuple[Any, ...]]:
    async with connection.cursor() as cursor:
        await cursor.execute(text)
        rows: Sequence[tuple[Any, ...]] = await cursor.fetchall()
        return rows

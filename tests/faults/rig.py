"""The system under fault: a pair of databases, Redis and Kafka, each behind a proxy, and supervised services."""

import asyncio
import os
import secrets
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Literal

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from redis.asyncio import Redis

from databus_core import names
from databus_core.settings import load
from devstack import Kind, Stack
from devstack.pipeline import Pipeline, Service
from devstack.process import tail
from devstack.replication import Pair, run
from faults.checker import Checker, Stuck
from faults.clients import Clients
from faults.follower import Follower
from faults.ledger import Ledger
from faults.proxy import Proxy
from faults.traced_service import launch
from faults.writer import Writer, prepared

SUPERVISED: tuple[Literal["reader", "publisher"], ...] = ("reader", "publisher")
_WRITERS = 2
#: seconds between two checks whether a service has ended
_SUPERVISION_SECONDS = 0.2
_DRAIN_SECONDS = 120
#: so few that a backfill takes some seconds, and has many chunks
_ROWS_PER_SECOND = 1000
_RENEW_SECONDS = 1
#: a pipeline is stuck if the transactions that are waited for take longer than this
PROGRESS_SECONDS = 120
#: topic and partitions: one partition, which shows the order of all changes; a topic per table; several partitions
LAYOUTS = {"one partition": ("{name}", 1), "a topic a table": ("{name}.{schema}.{table}", 1), "spread": ("{name}", 3)}


class Rig:
    """One pipeline with its servers. `pair` is already running, `stack` may be; the caller stops both."""

    def __init__(self, home: Path, pair: Pair, stack: Stack, seed: int, layout: str) -> None:
        self.pair, self.stack = pair, stack
        self.name = f"f{secrets.token_hex(4)}"
        self.schema = f"{self.name}_ledger"
        self._topic, self._partitions = LAYOUTS[layout]
        self.redis_server, self._kafka = stack.start("redis"), stack.start("kafka")
        *_, behind, front = stack.ports("kafka")
        self.proxies = {
            "database": Proxy(pair.primary.port),
            "redis": Proxy(self.redis_server.port),
            "kafka": Proxy(behind, front),
        }
        self._home = home
        self._seed = seed
        self.writers = [
            Writer(Ledger(n, seed), self.schema, lambda: pair.primary, Random(f"{seed}.{n}")) for n in range(_WRITERS)
        ]
        self.books = [book for writer in self.writers for book in writer.ledger.books]
        self.checker = Checker(self.writers)
        #: last log line of a service that ended by itself → how often this happened
        self.ends: Counter[str] = Counter()
        self._killed: set[int] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run services, writers and the checker. After the block, wait for all messages and compare the tables."""
        try:
            await self._prepare()
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(self._supervise()),
                    tasks.create_task(self.checker.follow(self._kafka, self._topic_partitions())),
                    tasks.create_task(self.follower.run()),
                ]
                requesting = tasks.create_task(self.clients.run())
                writing = [tasks.create_task(writer.run()) for writer in self.writers]
                await self.progress()
                yield
                self.clients.finish()
                await requesting
                await self._published()
                for writer in self.writers:
                    writer.finish()
                await asyncio.gather(*writing)
                await self.checker.complete(_DRAIN_SECONDS)
                for task in background:
                    task.cancel()
            await self.checker.compare(self.pair.primary, self.schema)
            await self.follower.compare(self.pair.primary, self.schema)
        finally:
            await self._clean()

    async def _published(self) -> None:
        """Wait until changes of all tables are published."""
        while any(book.left_out is not None for book in self.books):
            await self.progress(10)

    async def progress(self, transactions: int = 1) -> None:
        """Wait until this many transactions that begin from now on are in Kafka.

        Raises Stuck; then the services' logs contain where each of their tasks waits.
        """
        try:
            await self.checker.progress(transactions, PROGRESS_SECONDS)
        except Stuck:
            await self._write_tasks()
            raise

    async def kill(self, *services: Service) -> None:
        """Kill services; the supervisor starts them again."""
        for service in services:
            self._killed.add(self.pipeline.pid(service) or 0)
            await asyncio.to_thread(self.pipeline.kill, service)

    async def terminate(self, service: Service) -> None:
        """Stop a service with SIGTERM; the supervisor starts it again."""
        self._killed.add(self.pipeline.pid(service) or 0)
        await asyncio.to_thread(self.pipeline.stop, service)

    @asynccontextmanager
    async def stopped(self, pid: int | None) -> AsyncIterator[None]:
        """Suspend a process for a while."""
        if pid is None:  # it has just ended by itself
            yield
            return
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    @asynccontextmanager
    async def standby(self, service: Service) -> AsyncIterator[None]:
        """Run another replica of a service."""
        self._second.spawn(service)
        try:
            await asyncio.to_thread(self._second.wait, service)
            yield
        finally:
            await asyncio.to_thread(self._second.kill, service)

    async def forget_leader(self, role: Literal["reader", "publisher"]) -> None:
        """Let Redis forget who the leader is, so that there are two for a moment."""
        async with Redis.from_url(self.redis_server.url) as redis:
            await redis.delete(names.leader_key(self.name, role))

    def pid(self, kind: Kind) -> int | None:
        """Return the process id of a server; for the database, the primary's."""
        if kind == self.pair.kind:
            return self.pair.pid(self.pair.primary)
        return next(status.pid for status in self.stack.status() if status.kind == kind)

    @asynccontextmanager
    async def quiet(self) -> AsyncIterator[None]:
        """Pause the writers for a while."""
        await asyncio.gather(*(writer.pause() for writer in self.writers))
        try:
            yield
        finally:
            for writer in self.writers:
                writer.resume()

    async def decided(self) -> None:
        """Wait until each transaction that is prepared now is decided."""
        await asyncio.gather(*(writer.decided.wait() for writer in self.writers))

    def follow_primary(self) -> None:
        """Let the database's proxy forward new connections to the current primary, as a virtual address does."""
        self.proxies["database"].target = self.pair.primary.port

    @property
    def redis_data(self) -> Path:
        """The folder of Redis' append-only file."""
        return self.stack.home / "redis" / "data" / "appendonlydir"

    async def flush_redis(self) -> None:
        """Delete everything from Redis, its functions too."""
        async with Redis.from_url(self.redis_server.url) as redis:
            await redis.flushall()
            await redis.function_flush()

    async def _prepare(self) -> None:
        """Start proxies, then the services over empty tables."""
        for proxy in self.proxies.values():
            await proxy.start()
        behind = {
            name: replace(server, port=proxy.port, url=server.url.replace(str(server.port), str(proxy.port)))
            for (name, proxy), server in zip(
                self.proxies.items(), (self.pair.primary, self.redis_server, self._kafka), strict=True
            )
        }
        election = {"election": {"renew": f"{_RENEW_SECONDS}s"}}
        overrides: dict[str, dict[str, Any]] = {
            "reader": election,
            "backfill": {"rows_per_second": _ROWS_PER_SECOND},
            "publisher": election | {"topic": self._topic, "partitions": self._partitions},
        }

        def pipeline(name: str) -> Pipeline:
            return Pipeline(
                self._home / name,
                source=behind["database"],
                redis=behind["redis"],
                kafka=behind["kafka"],
                name=self.name,
                include=(f"{self.schema}.*",),
                overrides=overrides,
                launch=launch,
            )

        self.pipeline = pipeline("services")
        self.clients = Clients(load(self.pipeline.config), self.schema, self.books, Random(self._seed))
        self.follower = Follower(load(self.pipeline.config), self.books, Random(f"{self._seed}.follower"))
        self._second = pipeline("second")
        await run(self.pair.primary, f"CREATE DATABASE {self.schema} CHARACTER SET utf8mb4")
        for writer in self.writers:
            await writer.create()
        admin = AIOKafkaAdminClient(bootstrap_servers=self._kafka.url)
        await admin.start()
        await admin.create_topics([NewTopic(topic, self._partitions, 1) for topic in self._topics()])
        await admin.close()
        await asyncio.to_thread(self.pipeline.start_all, *SUPERVISED)

    def _topics(self) -> list[str]:
        tables = [book.name for book in self.books]
        return sorted({self._topic.format(name=self.name, schema=self.schema, table=table) for table in tables})

    def _topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for topic in self._topics() for number in range(self._partitions)]

    async def _supervise(self) -> None:
        """Restart services that end, as Kubernetes would."""
        pids = {service: self.pipeline.pid(service) for service in SUPERVISED}
        while True:
            for service in SUPERVISED:
                if self.pipeline.pid(service):
                    continue
                if pids[service] not in self._killed:
                    self.ends[_last_words(self.pipeline.log(service))] += 1
                pids[service] = self.pipeline.spawn(service).pid
            await asyncio.sleep(_SUPERVISION_SECONDS)

    async def _write_tasks(self) -> None:
        """Let the services write to their logs where their tasks wait."""
        for pipeline, service in product((self.pipeline, self._second), SUPERVISED):
            if pid := pipeline.pid(service):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGUSR1)
        await asyncio.sleep(1)  # no event to wait for: a service that is in an endless loop never answers

    async def _clean(self) -> None:
        for pipeline in (self.pipeline, self._second):
            for service in SUPERVISED:
                await asyncio.to_thread(pipeline.kill, service)
        for proxy in self.proxies.values():
            await proxy.stop()
        for xid in prepared(await run(self.pair.primary, "XA RECOVER")):  # a writer that was cancelled has left it
            await run(self.pair.primary, f"XA ROLLBACK {xid}")
        await run(self.pair.primary, f"DROP DATABASE {self.schema}")


def _last_words(log: Path) -> str:
    """Return the service's last log line without its time. Lines that do not begin with a time are skipped."""
    lines = [line.split(maxsplit=1)[-1] for line in tail(log, 100).splitlines() if line[:2] == "20"]
    return lines[-1] if lines else "nothing"

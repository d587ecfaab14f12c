"""A ledger that is written to the database all the time, and its messages in Kafka, which are all compared."""

import asyncio
from collections.abc import Awaitable
from random import Random

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from common.waiting import cancelled
from devstack import Server
from devstack.replication import run
from faults.checker import Checker
from faults.ledger import Ledger
from faults.writer import Writer

#: all of the pipeline's changes come to one partition, which shows their order
TOPIC = "proof"
SCHEMA = "ledger"
_SEED = 19


class Workload:
    """One writer, and the checker of what arrives."""

    def __init__(self, source: Server, kafka: Server) -> None:
        self._source, self._kafka = source, kafka
        self._writer = Writer(Ledger(0, _SEED), SCHEMA, lambda: source, Random(_SEED))
        self.checker = Checker([self._writer])
        #: tables that have a mirror in the lake, because they have a key
        self.mirrored = [f"{SCHEMA}.{book.name}" for book in self._writer.ledger.books if book.key]
        self._tasks: list[asyncio.Task[None]] = []

    async def prepare(self) -> None:
        """Create the tables and the topic."""
        await run(self._source, f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")
        await self._writer.create()
        admin = AIOKafkaAdminClient(bootstrap_servers=self._kafka.url)
        await admin.start()
        await admin.create_topics([NewTopic(TOPIC, 1, 1)])
        await admin.close()

    def start(self) -> None:
        """Begin to write and to compare."""
        following = self.checker.follow(self._kafka, [TopicPartition(TOPIC, 0)])
        self._tasks = [asyncio.create_task(following), asyncio.create_task(self._writer.run())]

    async def progress(self, transactions: int = 20, *, seconds: float = 120) -> None:
        """Wait until this many transactions that begin from now on are in Kafka. Raises Stuck or Violation."""
        await self._while_it_runs(self.checker.progress(transactions, seconds))

    async def finish(self) -> None:
        """Write no more, and compare the last messages, and the tables. Raises Stuck or Violation."""
        self._writer.finish()
        await self._while_it_runs(self._tasks[-1])
        self._tasks.pop()
        await self._while_it_runs(self.checker.complete(120))
        await self.checker.compare(self._source, SCHEMA)

    async def stop(self) -> None:
        """End at once. Raises Violation if a message was wrong."""
        while self._tasks:
            task = self._tasks.pop()
            await cancelled(task)
            if not task.cancelled():
                task.result()

    async def _while_it_runs(self, work: Awaitable[None]) -> None:
        """Wait for some work, or for the first error of a task."""
        waiting = asyncio.ensure_future(work)
        await asyncio.wait({waiting, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            await cancelled(waiting)
            await self.stop()
        await waiting

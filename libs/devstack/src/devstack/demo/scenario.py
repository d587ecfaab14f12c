"""The demo: a shop under load goes through the whole pipeline into a lake, and is proved equal there."""

import asyncio
import shutil
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from devstack import jars
from devstack.demo import compare, observe, shop
from devstack.pipeline import Pipeline, stop_services
from devstack.server import DevstackError, Kind, Server
from devstack.stack import Stack

#: the sink's connectors, from the root of the repository
_POM = Path("services/spark-sink/pom.xml")
_LOADS = 2

#: something that happens to the pipeline while the load runs
Disturb = Callable[[Pipeline], Coroutine[None, None, None]]


@dataclass(frozen=True)
class Outcome:
    """What the demo found."""

    comparisons: list[compare.Comparison]
    #: rows of the change log by table
    changes: dict[str, int]
    #: seconds from the last commit until it was in Kafka and in the lake
    kafka_lag: float
    lake_lag: float

    @property
    def equal(self) -> bool:
        """Whether every mirror is the same as its table."""
        return all(comparison.equal for comparison in self.comparisons)


class Demo:
    """One run, in a folder of its own."""

    def __init__(self, stack: Stack, home: Path, console: Console, disturb: Disturb | None = None) -> None:
        self._stack = stack
        self._home = home.resolve()
        self._console = console
        self._disturb = disturb
        self._begin = time.monotonic()

    async def run(self, transactions: int) -> Outcome:
        """Run the whole story; each step says what it does."""
        source, pipeline = await self.prepare()
        try:
            await self._load(source, pipeline, transactions)
            return await self._prove(source, pipeline)
        finally:
            await asyncio.to_thread(stop_services, pipeline.home)

    async def prepare(self) -> tuple[Server, Pipeline]:
        """Start servers and the services that need no dump, over a new shop."""
        self.say("Starting MariaDB, Redis and Kafka, fetching the connectors of Spark")
        kinds: tuple[Kind, ...] = ("mariadb", "redis", "kafka")
        *started, spark_jars = await asyncio.gather(
            *(asyncio.to_thread(self._stack.start, kind) for kind in kinds), asyncio.to_thread(connectors)
        )
        source, redis, kafka = (server for server in started if isinstance(server, Server))
        await shop.create(source)
        self.say("The shop is open: customers, products, orders, order lines; its products can only come by the dump")
        shutil.rmtree(self._home, ignore_errors=True)
        pipeline = Pipeline(
            self._home,
            source=source,
            redis=redis,
            kafka=kafka,
            name=f"shop-{time.time_ns() // 10**6:x}",
            overrides={"spark": {"jars": str(spark_jars), "trigger": 1}},
        )
        await asyncio.to_thread(pipeline.start_all, "publisher", "dump-api", "reader")
        self.say("reader, publisher and dump-api are ready")
        return source, pipeline

    async def _load(self, source: Server, pipeline: Pipeline, transactions: int) -> None:
        """Change the shop while a dump is taken, the sink starts, and a column is added."""
        loads = [shop.Load(source, seed) for seed in range(_LOADS)]
        half, dumped, calm = asyncio.Event(), asyncio.Event(), asyncio.Event()
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
        )
        with bar:
            task = bar.add_task("load: transactions", total=transactions)

            def done() -> None:
                bar.advance(task)
                if sum(load.transactions for load in loads) >= transactions // 2:
                    half.set()

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._run(loads, transactions, calm, done))
                tasks.create_task(self._dump_and_sink(pipeline, dumped))
                tasks.create_task(self._alter(source, half, dumped))
                if self._disturb:
                    await self._disturb(pipeline)
                calm.set()

    async def _run(
        self, loads: list[shop.Load], transactions: int, calm: asyncio.Event, done: Callable[[], None]
    ) -> None:
        await asyncio.gather(*(load.run(transactions // _LOADS, calm, done) for load in loads))
        changes, committed = sum(load.changes for load in loads), sum(load.transactions for load in loads)
        self.say(f"The load is done: {changes:,} row changes in {committed:,} transactions")

    async def _dump_and_sink(self, pipeline: Pipeline, dumped: asyncio.Event) -> None:
        dump = await observe.take_dump(pipeline)
        dumped.set()
        size = sum([await observe.download(pipeline, dump["id"], file) for file in dump["files"]])
        rows = sum(file["rows"] for file in dump["files"])
        at = dump["position"]
        self.say(f"Dump {dump['id']}: {rows:,} rows as of {at['file']}:{at['offset']}; {size:,} bytes, checksums right")
        await asyncio.to_thread(pipeline.start_all, "spark-sink")
        self.say("spark-sink has bootstrapped from a dump and follows Kafka")

    async def _alter(self, source: Server, half: asyncio.Event, dumped: asyncio.Event) -> None:
        await half.wait()
        await dumped.wait()  # a dump during which a table is altered fails, as it must
        await shop.alter(source)
        self.say("ALTER TABLE orders ADD COLUMN coupon, in the middle of the load")

    async def _prove(self, source: Server, pipeline: Pipeline) -> Outcome:
        """Wait until everything committed has arrived, then compare."""
        ended = time.monotonic()
        await observe.until_published(source, pipeline)
        kafka_lag = time.monotonic() - ended
        await observe.until_in_lake(pipeline)
        lake_lag = time.monotonic() - ended
        self.say("Comparing every row of every mirror with MariaDB")
        comparisons = [await compare.compare(source, pipeline.lake, table) for table in shop.TABLES]
        changes = {table: compare.count(pipeline.lake / "changes" / shop.SCHEMA / table) for table in shop.TABLES}
        return Outcome(comparisons, changes, kafka_lag, lake_lag)

    def say(self, text: str) -> None:
        """Tell a step."""
        self._console.print(
            f"[dim]\\[{time.monotonic() - self._begin:5.1f} s][/] {text}", highlight=False, soft_wrap=True
        )


def show(outcome: Outcome, console: Console) -> None:
    """Print what was found."""
    table = Table("table", "rows", "changes", "missing", "invented", "different", "equal")
    for found in outcome.comparisons:
        numbers = (found.rows, outcome.changes[found.table], found.missing, found.invented, found.different)
        verdict = "[green]yes[/]" if found.equal else "[red]NO[/]"
        table.add_row(found.table, *(f"{number:,}" for number in numbers), verdict)
    console.print(table)
    console.print(f"Last commit in Kafka after {outcome.kafka_lag:.1f} s, in the lake after {outcome.lake_lag:.1f} s.")


def servers(home: Path) -> Path:
    """Say where the demo's own servers are."""
    return home / "demo" / "servers"


def pipeline(home: Path) -> Path:
    """Say where the demo's pipeline is."""
    return home / "demo" / "pipeline"


def connectors() -> Path:
    """Give the folder of Spark's connectors, fetched if need be."""
    if not _POM.exists():
        raise DevstackError(f"{_POM} is not here: run this from the root of the repository")
    return jars.resolve(_POM)

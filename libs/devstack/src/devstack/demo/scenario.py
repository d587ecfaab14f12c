"""The demo: all services copy a shop under load into a lake; at the end, every row is compared."""

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
from devstack.demo.load import Load
from devstack.pipeline import Pipeline, stop_services
from devstack.server import KINDS, VARIABLES, DevstackError, Kind, Server, given
from devstack.stack import Stack

#: the pom of Spark's connectors, relative to the root of the repository
_POM = Path("services/spark-sink/pom.xml")
_LOADS = 2

#: called while the load runs, to disturb the pipeline
Disturb = Callable[[Pipeline], Coroutine[None, None, None]]


@dataclass(frozen=True)
class DemoResult:
    """The result of a demo."""

    comparisons: list[compare.Comparison]
    #: table → number of its row images in the change log
    changes: dict[str, int]
    #: seconds until Kafka had all changes, counted from when the load had ended and the sink had started
    kafka_lag: float
    #: seconds until the lake had all changes, counted from the same moment
    lake_lag: float

    @property
    def equal(self) -> bool:
        """Whether every mirror equals its table."""
        return all(comparison.equal for comparison in self.comparisons)


class Demo:
    """One run of the demo, with its pipeline in the folder `home`."""

    def __init__(self, stack: Stack, home: Path, console: Console, disturb: Disturb | None = None) -> None:
        self._stack = stack
        self._home = home.resolve()
        self._console = console
        self._disturb = disturb
        self._begin = time.monotonic()

    async def run(self, transactions: int) -> DemoResult:
        """Run the demo and print each step."""
        source, pipeline = await self.prepare()
        try:
            await self._load(source, pipeline, transactions)
            return await self._compare(source, pipeline)
        finally:
            await asyncio.to_thread(stop_services, pipeline.home)

    async def prepare(self) -> tuple[Server, Pipeline]:
        """Start the servers, create the shop, and start the services that need no dump."""
        self.say("Starting MariaDB, Redis and Kafka; downloading Spark's connectors")
        kinds: tuple[Kind, ...] = ("mariadb", "redis", "kafka")
        *started, spark_jars = await asyncio.gather(
            *(asyncio.to_thread(self._stack.start, kind) for kind in kinds), asyncio.to_thread(connectors)
        )
        source, redis, kafka = (server for server in started if isinstance(server, Server))
        await _require_no_shop(source)
        await shop.create(source)
        self.say("Created the shop: customers, products, orders, order lines")
        self.say("The products were inserted before the pipeline starts, so the lake gets them only from a dump")
        shutil.rmtree(self._home, ignore_errors=True)
        pipeline = Pipeline(
            self._home,
            source=source,
            redis=redis,
            kafka=kafka,
            name=f"shop-{time.time_ns() // 10**6:x}",
            overrides={"dumps": {"formats": ["parquet"]}, "spark": {"jars": str(spark_jars), "trigger": 1}},
        )
        await asyncio.to_thread(pipeline.start_all, "publisher", "dump-api", "reader")
        self.say("reader, publisher and dump-api are ready")
        return source, pipeline

    async def _load(self, source: Server, pipeline: Pipeline, transactions: int) -> None:
        """Run the load while a dump is taken, the sink starts, and a column is added."""
        loads = [Load(source, seed) for seed in range(_LOADS)]
        half_done, dumped, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
        )
        with bar:
            task = bar.add_task("load: transactions", total=transactions)

            def on_commit() -> None:
                bar.advance(task)
                if sum(load.transactions for load in loads) >= transactions // 2:
                    half_done.set()

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._run(loads, transactions, may_end, on_commit))
                tasks.create_task(self._dump_and_sink(pipeline, dumped))
                tasks.create_task(self._alter(source, half_done, dumped))
                if self._disturb:
                    await self._disturb(pipeline)
                may_end.set()

    async def _run(
        self, loads: list[Load], transactions: int, may_end: asyncio.Event, on_commit: Callable[[], None]
    ) -> None:
        await asyncio.gather(*(load.run(transactions // _LOADS, may_end, on_commit) for load in loads))
        changes, committed = sum(load.changes for load in loads), sum(load.transactions for load in loads)
        self.say(f"The load has ended: {changes:,} row changes in {committed:,} transactions")

    async def _dump_and_sink(self, pipeline: Pipeline, dumped: asyncio.Event) -> None:
        await asyncio.to_thread(pipeline.spawn, "spark-sink")  # Spark starts while the dump is taken
        dump = await observe.take_dump(pipeline)
        dumped.set()
        size = sum([await observe.download(pipeline, dump["id"], file) for file in dump["files"]])
        rows = sum(file["rows"] for file in dump["files"])
        at = dump["position"]
        self.say(f"Dump {dump['id']}: {rows:,} rows as of {at['file']}:{at['offset']}; {size:,} bytes, verified")
        await asyncio.to_thread(pipeline.wait, "spark-sink")
        self.say("spark-sink has loaded a dump and reads Kafka")

    async def _alter(self, source: Server, half_done: asyncio.Event, dumped: asyncio.Event) -> None:
        await half_done.wait()
        await dumped.wait()  # a dump fails if a table is altered meanwhile
        await shop.alter(source)
        self.say("ALTER TABLE orders ADD COLUMN coupon, in the middle of the load")

    async def _compare(self, source: Server, pipeline: Pipeline) -> DemoResult:
        """Wait until everything that was committed is in the lake, then compare."""
        ended = time.monotonic()
        await observe.until_published(source, pipeline)
        kafka_lag = time.monotonic() - ended
        await observe.until_in_lake(pipeline)
        lake_lag = time.monotonic() - ended
        self.say("Comparing every row of every mirror with MariaDB")
        comparisons = [await compare.compare(source, pipeline.lake, table) for table in shop.TABLES]
        return DemoResult(comparisons, compare.count_changes(pipeline.lake), kafka_lag, lake_lag)

    def say(self, text: str) -> None:
        """Print a step."""
        self._console.print(
            f"[dim]\\[{time.monotonic() - self._begin:5.1f} s][/] {text}", highlight=False, soft_wrap=True
        )


async def _require_no_shop(source: Server) -> None:
    """Raise DevstackError if the demo would replace a database of a server that the environment names."""
    if source == given("mariadb") and await shop.exists(source):
        raise DevstackError(
            f"{VARIABLES['mariadb'][0]}: this server has a database {shop.SCHEMA}, which the demo would replace; drop "
            "it, or unset the variable to start a server here"
        )


def run(home: Path, transactions: int) -> bool:
    """Run the demo, print the result, and return whether all tables are equal.

    The demo's servers are under `home`, except those that the environment names.
    """
    console, stack = Console(), Stack(servers_folder(home))
    try:
        result = asyncio.run(Demo(stack, pipeline_folder(home), console).run(transactions))
    finally:
        for kind in KINDS:
            stack.stop(kind)
    _print_result(result, console)
    return result.equal


def _print_result(result: DemoResult, console: Console) -> None:
    table = Table("table", "rows", "changes", "missing", "invented", "different", "equal")
    for found in result.comparisons:
        numbers = (found.rows, result.changes.get(found.table, 0), found.missing, found.invented, found.different)
        verdict = "[green]yes[/]" if found.equal else "[red]NO[/]"
        table.add_row(found.table, *(f"{number:,}" for number in numbers), verdict)
    console.print(table)
    lags = f"in Kafka {result.kafka_lag:.1f} s and in the lake {result.lake_lag:.1f} s"
    console.print(f"All changes were {lags} after the load had ended and spark-sink had started.")


def servers_folder(home: Path) -> Path:
    """Return the folder of the demo's servers."""
    return home / "demo" / "servers"


def pipeline_folder(home: Path) -> Path:
    """Return the folder of the demo's pipeline."""
    return home / "demo" / "pipeline"


def connectors() -> Path:
    """Return the folder of Spark's connectors, downloaded if necessary."""
    if not _POM.exists():
        raise DevstackError(f"there is no {_POM} here: run this from the root of the repository")
    return jars.resolve(_POM)

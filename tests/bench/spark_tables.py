"""Small batches: transactions with some rows in each of N tables, from their commit to all mirrors, on local[2].

The pipeline runs as for a user. The sink's own objects cut and write one batch for each transaction, without the pause
of `spark.trigger`.
"""

import argparse
import asyncio
import shutil
import time
from contextlib import closing
from functools import partial

from environment import environment, pipeline_of
from latency import database
from pyspark.sql import SparkSession
from report import Result, report
from rich.progress import track
from served import CONSOLE
from spark_session import LAKE, Cost, measured, session

from databus_core import kafka_client
from databus_core.change_topics import ChangeTopics
from databus_core.settings import Settings, load
from databus_spark.layout import Layout
from databus_spark.records import read_records
from databus_spark.types import TypeOptions
from databus_spark_sink.lake import Lake
from databus_spark_sink.stream.cuts import Cuts
from devstack import Server
from devstack.replication import run

#: rows of a table in each transaction
_ROWS = 20
#: goals: Spark jobs for each table of a batch; seconds from the commit to the mirrors of this many tables
_JOBS_GOAL, _SECONDS_GOAL, _LATENCY_TABLES = 8, 3, 10
_POLL_SECONDS = 0.01
_WARM_UP = 3


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tables", type=int, nargs="+", default=[1, 10, 100])
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--table-format", choices=["delta", "iceberg"], default="delta")
    chosen = options.parse_args()
    results: list[Result] = []
    with environment() as env, database() as (server, _), session(chosen.table_format) as spark:
        for count in chosen.tables:
            asyncio.run(_create(server, count))
            with pipeline_of(server, env, "earliest", source={"include": ["bench.t_*"]}) as pipeline:
                pipeline.start_all("publisher", "reader")
                results += asyncio.run(_measure(spark, load(pipeline.config), server, count, chosen.runs))
    report(f"spark-tables-{chosen.table_format}", results)


async def _create(server: Server, count: int) -> None:
    names = [f"bench.t_{number}" for number in range(count)]
    await run(
        server, "RESET MASTER", *(f"CREATE OR REPLACE TABLE {name} (id INT PRIMARY KEY, v INT)" for name in names)
    )


async def _measure(spark: SparkSession, settings: Settings, server: Server, count: int, runs: int) -> list[Result]:
    """Write one transaction after the other, and wait each time until the mirrors have it."""
    shutil.rmtree(LAKE, ignore_errors=True)
    layout, costs, seconds = Layout(LAKE.as_uri()), list[Cost](), list[float]()
    async with (
        kafka_client.consumer(settings.kafka, "read_uncommitted") as written,
        kafka_client.consumer(settings.kafka) as committed,
    ):
        topics = ChangeTopics(settings, settings.spark.tables)
        with closing(Lake(spark, layout, settings.spark.tables, topics.may_have, TypeOptions(), ())) as lake:
            lake.begin({})
            write_next = partial(_write_next, spark, settings, Cuts(settings, written, committed), lake)
            while len(lake.tables.known) < count:  # the CREATE TABLEs
                await write_next()
            for number in track(range(_WARM_UP + runs), f"batches of {count} tables", console=CONSOLE):
                rows = ", ".join(f"({number * _ROWS + row}, {row})" for row in range(_ROWS))
                inserts = [f"INSERT INTO bench.t_{table} VALUES {rows}" for table in range(count)]
                await run(server, "START TRANSACTION", *inserts, "COMMIT")
                begin = time.perf_counter()
                with measured(spark) as cost:
                    await write_next()
                if number >= _WARM_UP:
                    costs.append(cost)
                    seconds.append(time.perf_counter() - begin)
            _verify(lake, count, (_WARM_UP + runs) * _ROWS)
    name, goal = f"{count} tables", _SECONDS_GOAL if count == _LATENCY_TABLES else None
    return [
        Result(name, "s from commit to mirrors", seconds, goal=goal, at_most=True),
        Result(name, "Spark jobs/table", [cost.jobs / count for cost in costs], goal=_JOBS_GOAL, at_most=True),
        Result(name, "Spark tasks/table", [cost.tasks / count for cost in costs]),
    ]


async def _write_next(spark: SparkSession, settings: Settings, cuts: Cuts, lake: Lake) -> None:
    """Wait for the next transaction, and write it."""
    while (batch := await cuts.next(lake.state)) is None:  # noqa: ASYNC110 - only Kafka knows when that changes
        await asyncio.sleep(_POLL_SECONDS)
    records = read_records(spark, settings.kafka, batch.starts, batch.end.offsets)
    await asyncio.to_thread(lake.apply, records, batch.end)


def _verify(lake: Lake, count: int, expected: int) -> None:
    found = {lake.mirror(("bench", f"t_{number}")).table.read().count() for number in range(count)}
    if found != {expected}:
        raise SystemExit(f"bench: mirrors have {found} rows instead of {expected}")


if __name__ == "__main__":
    main()

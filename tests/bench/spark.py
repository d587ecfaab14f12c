"""The Spark sink: from Kafka into the change log, and from there into a mirror, on local[2].

One session, with the sink's configuration, reads the same topic in each round: raw, its records as they are into
Parquet; into a new change log; and from that into an empty mirror. Every round checks that nothing is missing.
"""

import argparse
import asyncio
import shutil
from dataclasses import dataclass

from aiokafka import TopicPartition
from delivered import consuming, wait_until_committed
from environment import Environment, create, environment, pipeline_of
from pyspark.sql import SparkSession
from report import Result, report
from rich.progress import track
from served import CONSOLE, Log, served
from spark_session import LAKE, Cost, measured, session
from workloads import WORKLOADS

from databus_core import names
from databus_core.kafka_progress import read_progress
from databus_core.settings import Settings, load
from databus_spark.changelog import ChangeLog, LogState
from databus_spark.layout import Layout
from databus_spark.messages import decode_records
from databus_spark.mirror import Mirror
from databus_spark.records import read_records
from databus_spark.types import TypeOptions

#: what is measured, in this order. `summary` is what tells the sink which tables have changed, and how
STEPS = ("raw", "change log", "summary", "mirror")
#: goals: percent of the speed of the raw copy, and of the change log
LOG_GOAL, MIRROR_GOAL = 40, 50
_NAME = ("bench", "t")
#: workload → its scale here, at scale 1: the other benches' W1s is too short
_SCALES = {"W1m": 1, "W1s": 2, "W2": 1}
#: workload → the share of its row changes that leave a row in the table
_KEPT = {"W1m": 1.0, "W1s": 1.0, "W2": 500 / 900}


@dataclass(frozen=True)
class Topic:
    """The records of a workload in Kafka."""

    settings: Settings
    #: where they begin and end
    start: LogState
    end: LogState
    #: row images; an update has two
    images: int
    #: rows that the table has in the end
    rows: int


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=1, help="0.1 writes and reads a tenth, for a quick check")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--only", choices=[*WORKLOADS], help="run only this workload")
    chosen = options.parse_args()
    results = []
    with environment() as env, session() as spark:
        for name in WORKLOADS:
            if chosen.only in (None, name):
                results += speed(name, spark, fill(name, chosen.scale, env), chosen.runs)
    report("spark", results)


def fill(name: str, scale: float, env: Environment) -> Topic:
    """Let a new pipeline publish a workload into a topic with one partition."""
    with (
        served(name, WORKLOADS[name], "mariadb", scale * _SCALES[name]) as (server, log, _),
        pipeline_of(server, env, "earliest") as pipeline,
    ):
        topic = f"{pipeline.name}.bench.t"
        create(env.kafka, topic)
        pipeline.start_all("publisher", "reader")
        start, end = asyncio.run(_published(load(pipeline.config), topic, log, env))
        return Topic(load(pipeline.config), start, end, log.images, round(log.rows * _KEPT[name]))


async def _published(settings: Settings, topic: str, log: Log, env: Environment) -> tuple[LogState, LogState]:
    """Wait until the whole log is published; return where its records begin and end."""
    async with consuming(env.kafka, names.progress_topic(settings.name)) as progress:
        await wait_until_committed(progress, log)
    partition = TopicPartition(topic, 0)
    async with consuming(env.kafka, topic) as consumer:
        ends = await consumer.end_offsets([partition])
    last = await read_progress(settings)
    if last is None:
        raise SystemExit(f"bench: topic {names.progress_topic(settings.name)} is empty")
    return LogState(offsets={topic: {0: 0}}), LogState(last.transaction, {topic: {0: ends[partition]}})


def speed(name: str, spark: SparkSession, topic: Topic, runs: int) -> list[Result]:
    """Measure the steps in each round; return the speed of each, how they compare, and what Spark ran for them."""
    costs: dict[str, list[Cost]] = {step: [] for step in STEPS}
    for round_ in track(range(runs + 1), f"writing {name} to the lake", console=CONSOLE):
        for step, cost in write_lake(spark, topic).items():
            if round_:  # the first round warms up Spark and Kafka
                costs[step].append(cost)
    pace = {step: [topic.images / cost.wall for cost in each] for step, each in costs.items()}
    shares = [log / raw * 100 for log, raw in zip(pace["change log"], pace["raw"], strict=True)]
    mirrored = [mirror / log * 100 for mirror, log in zip(pace["mirror"], pace["change log"], strict=True)]
    return [
        *(Result(f"{name}: {step}", "images/s", figures) for step, figures in pace.items()),
        Result(f"{name}: change log", "% of its speed", shares, "raw", LOG_GOAL),
        Result(f"{name}: mirror", "% of its speed", mirrored, "change log", MIRROR_GOAL),
        *(
            Result(f"{name}: {step}", "µs CPU/image", [cost.cpu / topic.images * 1e6 for cost in costs[step]])
            for step in STEPS
        ),
        *(Result(f"{name}: {step}", "Spark jobs", [cost.jobs for cost in costs[step]]) for step in STEPS),
        *(Result(f"{name}: {step}", "Spark tasks", [cost.tasks for cost in costs[step]]) for step in STEPS),
    ]


def write_lake(spark: SparkSession, topic: Topic) -> dict[str, Cost]:
    """Write the topic once with each of the STEPS, into an empty lake."""
    shutil.rmtree(LAKE, ignore_errors=True)
    layout, costs = Layout(LAKE.as_uri()), dict[str, Cost]()
    records = read_records(spark, topic.settings.kafka, topic.start.offsets, topic.end.offsets)
    if records is None:
        raise SystemExit("bench: the topic is empty")
    with measured(spark) as costs["raw"]:
        records.write.parquet(f"{layout.root}/raw")
    log = ChangeLog(spark, layout.changes)
    log.start(topic.start.offsets)
    with measured(spark) as costs["change log"]:
        entries = decode_records(records, topic.start.transaction, topic.end.transaction)
        log.append(entries, topic.end)
    with measured(spark) as costs["summary"]:
        changes = log.changes(topic.start.transaction, topic.end.transaction)[_NAME]
    session = spark.newSession()  # as the sink does
    mirror = Mirror(session, ChangeLog(session, layout.changes), _NAME, layout.mirror(*_NAME), TypeOptions(), ())
    [create_table] = changes.statements
    mirror.reset(changes.definitions[create_table.version], create_table.transaction)
    with measured(spark) as costs["mirror"]:
        mirror.advance(changes, topic.end.transaction)
    _verify(log, mirror, topic)
    return costs


def _verify(log: ChangeLog, mirror: Mirror, topic: Topic) -> None:
    """Fail the bench unless the lake has exactly what was written: each row is inserted, updated and deleted once."""
    images, distinct = (
        log.read().where("_query is null").selectExpr("count(*)", "count(distinct cells[0], _action)").head()
    )
    if not images == distinct == topic.images:
        raise SystemExit(
            f"bench: the change log has {images} images, {distinct} of them different ones, instead of {topic.images}"
        )
    if (rows := mirror.table.read().count()) != topic.rows:
        raise SystemExit(f"bench: the mirror has {rows} rows instead of {topic.rows}")


if __name__ == "__main__":
    main()

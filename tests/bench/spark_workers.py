"""The Spark sink on a cluster: into the change log, and from there into a mirror, with one worker of one core, and two.

Driver, Kafka and workers share this machine's processors, so two workers cannot be twice as fast on two of them.
"""

import argparse
import asyncio
import statistics
from pathlib import Path

from environment import environment
from report import Result, report
from rich.progress import track
from served import CONSOLE
from spark import Topic, fill, write_lake
from spark_session import session

from cluster.servers import SparkCluster
from common.waiting import eventually

STEPS = ("change log", "mirror")
GOAL = 1.7
_CONF = {
    "spark.executor.memory": "768m",
    "spark.sql.shuffle.partitions": "2",  # as on one machine: there are no more processors
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=0.2, help="of the workload W1m (default: %(default)s)")
    options.add_argument("--runs", type=int, default=5)
    chosen = options.parse_args()
    with environment() as env:
        topic = fill("W1m", chosen.scale, env)
        one, two = (speed(workers, topic, chosen.runs) for workers in (1, 2))
    results = [
        Result(f"W1m: {step}, {workers}", "images/s", found[step])
        for workers, found in (("one worker", one), ("two workers", two))
        for step in STEPS
    ]
    results += [
        Result(f"W1m: {step}, two workers", "times", [pace / statistics.median(one[step]) for pace in two[step]],
               "one worker", GOAL)
        for step in STEPS
    ]  # fmt: skip
    report("spark-workers", results)


def speed(workers: int, topic: Topic, runs: int) -> dict[str, list[float]]:
    """Write the topic to the lake with so many workers; return each step's row images a second in each run."""
    cluster = SparkCluster(Path(".devstack/bench/cluster").resolve(), workers)
    try:
        asyncio.run(eventually(cluster.is_ready))
        with session(master=cluster.url, conf=_CONF) as spark:
            rounds = track(range(runs + 1), f"writing W1m with {workers} workers", console=CONSOLE)
            costs = [write_lake(spark, topic) for _ in rounds][1:]  # the first round warms up
            if len(list(cluster.executors())) != workers:
                raise SystemExit(f"bench: Spark has not started {workers} executors")
    finally:
        cluster.kill()
    return {step: [topic.images / cost[step].wall for cost in costs] for step in STEPS}


if __name__ == "__main__":
    main()

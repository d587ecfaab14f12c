"""What the benches of the Spark sink share: a session with the sink's configuration, and what a step in it takes."""

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from environment import cpu
from pyspark.sql import SparkSession

from databus_core.settings import Spark
from databus_spark.layout import Layout
from databus_spark_sink.session import open_session
from devstack import jars

LAKE = Path(".devstack/bench/lake").resolve()


@dataclass
class Cost:
    """What a step took."""

    #: wall clock, and CPU time of Spark's process, in seconds
    wall: float = 0.0
    cpu: float = 0.0
    jobs: int = 0
    tasks: int = 0


@contextmanager
def session(
    table_format: str = "delta", master: str = "local[2]", conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Open a session; its lake is deleted at the end."""
    folder = jars.resolve(Path("services/spark-sink/pom.xml"))
    properties = {"spark.ui.retainedJobs": 100_000, **(conf or {})}  # `measured` counts the jobs
    settings = Spark(jars=folder, master=master, conf=properties, table_format=table_format)
    spark = open_session(settings, Layout(LAKE.as_uri()))
    try:
        yield spark
    finally:
        spark.stop()
        shutil.rmtree(LAKE, ignore_errors=True)


@contextmanager
def measured(spark: SparkSession) -> Iterator[Cost]:
    """Yield the cost of the block, which is complete at its end."""
    process, cost = spark.sparkContext._gateway.proc.pid, Cost()
    before, used, begin = _jobs(spark), cpu(process), time.perf_counter()
    yield cost
    cost.wall, cost.cpu = time.perf_counter() - begin, cpu(process) - used
    jobs = _jobs(spark)
    new = jobs.keys() - before.keys()
    cost.jobs, cost.tasks = len(new), sum(jobs[job] for job in new)


def _jobs(spark: SparkSession) -> dict[int, int]:
    """Return the number of completed tasks of each job that Spark remembers, by the job's id."""
    store = spark.sparkContext._jsc.sc().statusStore()
    found = store.jobsList(None)
    jobs = (found.apply(index) for index in range(found.size()))
    return {job.jobId(): job.numCompletedTasks() for job in jobs}

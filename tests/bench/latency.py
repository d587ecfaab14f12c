"""The latency from a row's commit until it can be read from Kafka, under a steady load of single-row transactions."""

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pymysql
from aiokafka import AIOKafkaConsumer
from delivered import consuming, our_ids
from environment import Environment, cpu, create, pipeline_of
from report import Result
from rich.progress import track
from served import CONSOLE
from writer import Pace

from devstack import Server, Stack

SECONDS, CONNECTIONS = 20, 4
#: if the writer falls behind by more than this many seconds, the bench fails
LATE = 0.2
#: if the last rows arrive later than this many seconds after the planned end of writing, the bench fails
TIMEOUT = 60
#: goals: transactions a second → percentile → milliseconds
GOALS = {1_000: {50: 8, 99: 20}, 2_000: {50: 8, 99: 25}}
#: goal: reader and publisher together, in percent of a processor, by transactions a second
CPU_GOALS = {1_000: 20}
#: returns the column `id` of each row in a message
Ids = Callable[[bytes], list[int]]


def latency(env: Environment, runs: int, rates: Sequence[int] = tuple(GOALS)) -> list[Result]:
    """Measure the time from the answer to a commit until a consumer with `read_committed` has the row.

    `rates` are in transactions a second, each with goals in GOALS.
    """
    with database() as (server, mariadb), pipeline_of(server, env, "latest") as pipeline:
        pipeline.start_all("publisher", "reader")
        pids = {service: pipeline.pid(service) for service in ("reader", "publisher")} | env.pids | {"mariadb": mariadb}
        topic = f"{pipeline.name}.bench.t"
        create(env.kafka, topic)
        pace = Pace(server.host, server.port, server.user, server.password, 0, rates[0], 5, CONNECTIONS)
        asyncio.run(measure(pace, env.kafka, topic))  # warms up services and servers
        results, first = [], pace.rate * 5
        for rate in rates:
            pace = replace(pace, rate=rate, seconds=SECONDS)
            results += _at_rate(pace, first, runs, pids, env.kafka, topic)
            first += runs * rate * SECONDS
        return results


def _at_rate(pace: Pace, first: int, runs: int, pids: Mapping[str, int], kafka: Server, topic: str) -> Iterator[Result]:
    """Measure `runs` times, with rows whose ids start at `first`."""
    rows = pace.rate * SECONDS
    latencies: list[list[float]] = []  # seconds of each row, by run
    seconds: dict[str, list[float]] = {name: [] for name in pids}  # of CPU
    load = []
    for run in track(range(runs), f"measuring latency at {pace.rate:,}/s", console=CONSOLE):
        load.append(os.getloadavg()[0])
        before = {name: cpu(pid) for name, pid in pids.items()}
        latencies.append(asyncio.run(measure(replace(pace, first=first + run * rows), kafka, topic)))
        for name, pid in pids.items():
            seconds[name].append(cpu(pid) - before[name])
    name = f"latency at {pace.rate:,}/s"
    for p, goal in GOALS[pace.rate].items():
        figures = [statistics.quantiles(run, n=100)[p - 1] * 1000 for run in latencies]
        yield Result(f"{name}: p{p}", "ms", figures, goal=goal, at_most=True)
    both = [
        (reader + publisher) / SECONDS * 100
        for reader, publisher in zip(seconds["reader"], seconds["publisher"], strict=True)
    ]
    yield Result(f"{name}: reader + publisher", "% of a CPU", both, goal=CPU_GOALS.get(pace.rate), at_most=True)
    for process, figures in seconds.items():
        yield Result(f"{name}: {process}", "µs CPU/transaction", [figure / rows * 1e6 for figure in figures])
    yield Result(f"{name}: load average before a run", "processes", load)


@contextmanager
def database() -> Iterator[tuple[Server, int]]:
    """Start a MariaDB server with an empty table; yield the server and its process id."""
    stack = Stack(Path(".devstack/bench/latency"), own=True)
    server = stack.start("mariadb")
    try:
        with pymysql.connect(host=server.host, port=server.port, user=server.user, password=server.password) as root:
            for statement in (
                "CREATE OR REPLACE DATABASE bench",
                "CREATE TABLE bench.t (id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL)",
            ):
                root.query(statement)
        yield server, next(status.pid for status in stack.status() if status.kind == "mariadb")
    finally:
        stack.stop("mariadb")


async def measure(pace: Pace, kafka: Server, topic: str, ids: Ids = our_ids) -> list[float]:
    """Write rows and consume them; return each row's latency in seconds."""
    return [readable - committed for committed, readable in await measure_times(pace, kafka, topic, ids)]


async def measure_times(pace: Pace, kafka: Server, topic: str, ids: Ids = our_ids) -> list[tuple[float, float]]:
    """Write rows and consume them; return when each was committed and when it was readable, on the monotonic clock."""
    async with consuming(kafka, topic) as consumer:
        await consumer.seek_to_end()
        command = (sys.executable, str(Path(__file__).with_name("writer.py")))
        pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
        writer = await asyncio.create_subprocess_exec(*command, **pipes)
        async with asyncio.timeout(pace.seconds + TIMEOUT):
            (written, _), readable = await asyncio.gather(
                writer.communicate(json.dumps(asdict(pace)).encode()), arrivals(consumer, pace, ids)
            )
    committed = json.loads(written)
    if committed[-1] - committed[0] > pace.seconds + LATE:
        raise SystemExit(f"bench: the writer took {committed[-1] - committed[0]:.1f} s instead of {pace.seconds} s")
    return [(moment, readable[pace.first + number]) for number, moment in enumerate(committed)]


async def arrivals(consumer: AIOKafkaConsumer, pace: Pace, ids: Ids) -> dict[int, float]:
    """Return when each row was received, by row id; fail the bench if other rows than the written ones arrive."""
    batches, count = [], 0
    while count < pace.rate * pace.seconds:
        for records in (await consumer.getmany(timeout_ms=1000)).values():
            batches.append((time.monotonic(), records))
            count += len(records)
    readable = {row: moment for moment, records in batches for record in records for row in ids(record.value)}
    if readable.keys() != set(range(pace.first, pace.first + count)):
        raise SystemExit(f"bench: {count} rows from id {pace.first} on were written, but other ids were consumed")
    return readable

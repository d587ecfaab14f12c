"""The latency from a row's commit until it can be read from Kafka, under a steady load of single-row transactions."""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
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

RATE, SECONDS, CONNECTIONS = 2_000, 20, 4
#: if the writer falls behind by more than this many seconds, the bench fails
LATE = 0.2
#: if the last rows arrive later than this many seconds after the planned end of writing, the bench fails
TIMEOUT = 60
#: goals: percentile → milliseconds
GOALS = {50: 20, 99: 100}
#: returns the column `id` of each row in a message
Ids = Callable[[bytes], list[int]]


def latency(env: Environment, runs: int) -> list[Result]:
    """Measure the time from the answer to a commit until a consumer with `read_committed` has the row."""
    latencies: list[list[float]] = []  # seconds of each row, by run
    cost: dict[str, list[float]] = {}  # µs CPU a transaction
    with database() as (server, mariadb), pipeline_of(server, env, "latest") as pipeline:
        pipeline.start_all("publisher", "reader")
        pids = {service: pipeline.pid(service) for service in ("reader", "publisher")} | env.pids | {"mariadb": mariadb}
        pace = Pace(server.host, server.port, server.user, server.password, 0, RATE, SECONDS, CONNECTIONS)
        topic = f"{pipeline.name}.bench.t"
        create(env.kafka, topic)
        asyncio.run(measure(replace(pace, seconds=5), env.kafka, topic))  # warms up services and servers
        for run in track(range(1, runs + 1), "measuring latency", console=CONSOLE):
            before = {name: cpu(pid) for name, pid in pids.items()}
            latencies.append(asyncio.run(measure(replace(pace, first=run * RATE * SECONDS), env.kafka, topic)))
            for name, pid in pids.items():
                cost.setdefault(name, []).append((cpu(pid) - before[name]) / (RATE * SECONDS) * 1e6)
    percentiles = {p: [statistics.quantiles(run, n=100)[p - 1] * 1000 for run in latencies] for p in GOALS}
    return [
        *(Result(f"latency: p{p}", "ms", percentiles[p], goal=goal, at_most=True) for p, goal in GOALS.items()),
        *(Result(f"latency: {name}", "µs CPU/transaction", figures) for name, figures in cost.items()),
    ]


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

"""A backfill beside a stream: how fast a table's rows reach Kafka, and how much later the stream's transactions do.

The table is that of W1m. Another table gets single-row transactions at a steady rate. All processes share the machine's
processors. The baseline of the latency is the same stream without a backfill, measured before each one.
"""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pymysql
from delivered import debezium_images
from environment import Environment, cpu, create, environment, pipeline_of, verify
from latency import database, measure_times
from report import Result, report
from rich.progress import track
from served import CONSOLE
from workloads import WORKLOADS, sysbench_row
from writer import Pace

from databus_core import names
from databus_core.kafka_compacted import following
from databus_core.kafka_table_states import write_backfills
from databus_core.settings import Settings, load
from databus_core.table_states import TableStates, new_backfills
from devstack import Server
from devstack.pipeline import Pipeline

#: transactions per second of the stream, unless `--rate` says otherwise, and connections for them
RATE, CONNECTIONS = 500, 2
#: goals: rows per second of the backfill; p99 of the stream's latency, divided by that without a backfill
ROWS_GOAL, LATENCY_GOAL = 100_000, 2
#: rows of one INSERT that fills the table
_BATCH = 1000
_ROUTES = [
    {"match": ["bench.big"], "format": "debezium-json", "options": {"schemas_enable": False}},
    {"match": ["*.*"]},
]


@dataclass(frozen=True)
class Loading:
    """One backfill."""

    #: when it was requested and when its last rows were committed, on the monotonic clock
    begin: float
    end: float
    #: CPU time of each process, in seconds
    cpu: dict[str, float]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=5_000_000)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--rate", type=int, default=RATE, help="transactions per second of the stream")
    options.add_argument("--rows-per-second", type=int, help="backfill.rows_per_second; without it, as fast as it goes")
    chosen = options.parse_args()
    limit = {"rows_per_second": chosen.rows_per_second} if chosen.rows_per_second else {}
    pace_of: list[float] = []
    alone: list[float] = []
    beside: list[float] = []
    cost: dict[str, list[float]] = {}
    with environment() as env, _table(chosen.rows) as (server, mariadb):
        for _ in track(range(chosen.runs), "loading", console=CONSOLE):
            with pipeline_of(server, env, "latest", {"routes": _ROUTES}, backfill=limit) as pipeline:
                pids = env.pids | {"mariadb": mariadb}
                quiet, busy, loading = _run(pipeline, env, pids, chosen.rows, chosen.rate)
            pace_of.append(chosen.rows / (loading.end - loading.begin))
            alone.append(_p99(quiet) * 1000)
            beside.append(_p99(busy) * 1000)
            for name, seconds in loading.cpu.items():
                cost.setdefault(name, []).append(seconds / chosen.rows * 1e6)
    ratios = [loaded / quiet for loaded, quiet in zip(beside, alone, strict=True)]
    report(
        "backfill",
        [
            Result("backfill", "rows/s", pace_of, goal=ROWS_GOAL),
            Result("stream alone: p99", "ms", alone),
            Result("stream beside a backfill: p99", "ms", beside),
            Result("stream: p99", "times as long", ratios, "stream alone", LATENCY_GOAL, at_most=True),
            *(Result(f"backfill: {name}", "µs CPU/row", figures) for name, figures in cost.items()),
        ],
    )


@contextmanager
def _table(rows: int) -> Iterator[tuple[Server, int]]:
    """Fill the table to load, without binlog; yield the server and its process id."""
    with database() as (server, pid):
        login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
        with pymysql.connect(**login, autocommit=True) as connection:
            draw = random.Random(7)
            connection.query("SET sql_log_bin = 0")
            connection.query(WORKLOADS["W1m"].table.replace("bench.t", "bench.big"))
            for first in track(range(1, rows + 1, _BATCH), "filling the table", console=CONSOLE):
                numbers = range(first, min(first + _BATCH, rows + 1))
                values = (f"({','.join(map(str, sysbench_row(draw, number)))})" for number in numbers)
                connection.query(f"INSERT INTO bench.big VALUES {','.join(values)}")
            connection.query("ANALYZE TABLE bench.big")
        yield server, pid


def _run(
    pipeline: Pipeline, env: Environment, pids: dict[str, int], rows: int, rate: int
) -> tuple[list[float], list[float], Loading]:
    """Measure the stream alone, and then beside a backfill. Return the latencies of both, and the backfill."""
    stream, table = f"{pipeline.name}.bench.t", f"{pipeline.name}.bench.big"
    create(env.kafka, stream)
    create(env.kafka, table)
    pipeline.start_all("publisher", "reader")
    pids = pids | {service: pipeline.pid(service) for service in ("reader", "publisher")}
    source = pipeline.source
    first = time.time_ns() // 1000 * 1000
    pace = Pace(source.host, source.port, source.user, source.password, first, rate, 5, CONNECTIONS)
    asyncio.run(measure_times(pace, env.kafka, stream))  # warms up services and servers
    alone = replace(pace, first=pace.first + 10**7, seconds=20)
    quiet = [readable - committed for committed, readable in asyncio.run(measure_times(alone, env.kafka, stream))]
    settings = load(pipeline.config)
    seconds = 10 + 2 * rows // min(settings.backfill.rows_per_second or ROWS_GOAL, ROWS_GOAL)
    beside = replace(pace, first=pace.first + 2 * 10**7, seconds=seconds)
    times, loading = asyncio.run(_beside(settings, beside, env.kafka, stream, pids))
    verify("the backfill", env.kafka, table, debezium_images, rows)
    if times[-1][0] < loading.end:
        raise SystemExit("bench: the stream ended before the backfill")
    busy = [readable - committed for committed, readable in times if loading.begin <= committed <= loading.end]
    return quiet, busy, loading


async def _beside(
    settings: Settings, pace: Pace, kafka: Server, topic: str, pids: dict[str, int]
) -> tuple[list[tuple[float, float]], Loading]:
    measuring = asyncio.create_task(measure_times(pace, kafka, topic))
    await asyncio.sleep(2)  # until the writer has begun
    loading = await _load(settings, pids)
    return await measuring, loading


async def _load(settings: Settings, pids: dict[str, int]) -> Loading:
    """Request a backfill, and wait for its end."""
    before, begin = {name: cpu(pid) for name, pid in pids.items()}, time.monotonic()
    [backfill] = new_backfills([("bench", "big")])
    states = TableStates()
    async with following(settings.kafka, names.table_states_topic(settings.name), 0) as topic:
        await write_backfills(settings, [backfill])
        while states.state(backfill.id) not in ("done", "failed"):
            for key, value in await topic.take():
                states.apply(key, value)
    if states.state(backfill.id) == "failed":
        raise SystemExit(f"bench: {states.progress[backfill.id].error}")
    return Loading(begin, time.monotonic(), {name: cpu(pid) - before[name] for name, pid in pids.items()})


def _p99(latencies: list[float]) -> float:
    return statistics.quantiles(latencies, n=100)[98]


if __name__ == "__main__":
    main()

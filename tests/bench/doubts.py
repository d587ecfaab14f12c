"""A stream beside tables in doubt: how much later its transactions reach Kafka while others are parked and healed.

One table gets single-row transactions at a steady rate. Each second a small table of the same pipeline is put in doubt
and loaded again; with `--every 0`, the next one follows at once. A ROLLBACK after rows, for which the reader begins a
new generation, is measured by itself. The baseline is the same stream alone, measured before in each run. All processes
share the machine's processors.
"""

import argparse
import asyncio
import logging
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle

from environment import Environment, create, environment, pipeline_of
from latency import database, measure
from report import Result, report
from rich.progress import track
from served import CONSOLE
from writer import Pace

from databus_core import names
from databus_core.kafka_compacted import following
from databus_core.kafka_table_states import write_backfills
from databus_core.settings import load
from databus_core.table_states import TableStates, new_backfills
from devstack import Server
from devstack.pipeline import Pipeline
from devstack.replication import run

#: transactions per second of the stream
RATE, CONNECTIONS = 500, 2
#: goal: p99 of the stream's latency, divided by that of the stream alone
LATENCY_GOAL = 1.5
#: seconds without the next step of a doubt after which the bench fails
_TIMEOUT = 60
_ROWS = 100
#: table → what follows its columns
_TABLES = {
    "imaged": "",
    "logged": "",
    "parted": "PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (50), PARTITION q VALUES LESS THAN MAXVALUE)",
    "undone": "",
    "unbound": "ENGINE=MyISAM",
}
_CHANGE = "UPDATE bench.{} SET n = n + 1 WHERE id = 60"
#: table → statements that put it in doubt
_DOUBTS = {
    "imaged": ["SET SESSION binlog_row_image = MINIMAL", _CHANGE.format("imaged")],
    "logged": ["SET SESSION binlog_format = STATEMENT", _CHANGE.format("logged")],
    "parted": ["ALTER TABLE bench.parted TRUNCATE PARTITION p"],
}
#: the same; the server logs this ROLLBACK because it cannot undo the change of the second table
_ROLLBACKS = {
    "undone": [
        "START TRANSACTION",
        "SAVEPOINT s",
        *map(_CHANGE.format, ("undone", "unbound")),
        "ROLLBACK TO s",
        "COMMIT",
    ]
}
#: name of a measurement → what is done meanwhile
_BESIDE: dict[str, Mapping[str, Sequence[str]]] = {
    "alone": {}, "beside doubts": _DOUBTS, "beside ROLLBACKs": _ROLLBACKS,
}  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=20, help="of each measurement")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--every", type=float, default=1.0, help="seconds from one doubt to the next, at least")
    chosen = options.parse_args()
    logging.getLogger("asyncmy").setLevel(logging.ERROR)  # the server warns at each ROLLBACK
    latencies: dict[str, list[list[float]]] = {name: [] for name in _BESIDE}  # seconds of each row, by run
    healed: dict[str, list[float]] = {name: [] for name in _BESIDE}
    with environment() as env, database() as (server, _):
        asyncio.run(_create_tables(server))
        for _ in track(range(chosen.runs), "doubting", console=CONSOLE):
            with pipeline_of(server, env, "latest", doubt={"heal": "manual"}) as pipeline:
                for name, (times, count) in _run(pipeline, env, chosen.seconds, chosen.every).items():
                    latencies[name].append(times)
                    healed[name].append(count)
    percentiles = {
        (name, p): [statistics.quantiles(times, n=100)[p - 1] * 1000 for times in runs]
        for name, runs in latencies.items()
        for p in (50, 99)
    }
    results = [Result(f"stream {name}: p{p}", "ms", figures) for (name, p), figures in percentiles.items()]
    for name, goal in {"beside doubts": LATENCY_GOAL, "beside ROLLBACKs": None}.items():
        results.append(Result(f"{name}: healed", "doubts", healed[name]))
        for p in (50, 99):
            ratios = [slow / quick for slow, quick in zip(percentiles[name, p], percentiles["alone", p], strict=True)]
            bound = goal if p == 99 else None
            results.append(Result(f"stream {name}: p{p}", "times as long", ratios, "stream alone", bound, at_most=True))
    report("doubts", results)


async def _create_tables(server: Server) -> None:
    rows = ", ".join(f"({number}, 0)" for number in range(_ROWS))
    for table, rest in _TABLES.items():
        create = f"CREATE TABLE bench.{table} (id INT NOT NULL PRIMARY KEY, n INT NOT NULL) {rest}"
        await run(server, create, f"INSERT INTO bench.{table} VALUES {rows}")


def _run(pipeline: Pipeline, env: Environment, seconds: int, every: float) -> dict[str, tuple[list[float], int]]:
    """Measure the stream alone, and beside each kind of disturbance: its latencies, and how many doubts were healed."""
    topic, source = f"{pipeline.name}.bench.t", pipeline.source
    for table in ("t", *_TABLES):
        create(env.kafka, f"{pipeline.name}.bench.{table}")
    pipeline.start_all("publisher", "reader")
    first = time.time_ns() // 1000 * 1000
    pace = Pace(source.host, source.port, source.user, source.password, first, RATE, 5, CONNECTIONS)
    asyncio.run(measure(pace, env.kafka, topic))  # warms up services and servers
    found = {}
    for number, (name, statements) in enumerate(_BESIDE.items(), 1):
        next_pace = replace(pace, first=first + number * 10**7, seconds=seconds)
        found[name] = asyncio.run(_measured(pipeline, next_pace, env.kafka, topic, statements, every))
    return found


async def _measured(
    pipeline: Pipeline, pace: Pace, kafka: Server, topic: str, statements: Mapping[str, Sequence[str]], every: float
) -> tuple[list[float], int]:
    measuring = asyncio.create_task(measure(pace, kafka, topic))
    healed = await _doubt(pipeline, statements, every, measuring.done) if statements else 0
    return await measuring, healed


async def _doubt(
    pipeline: Pipeline, statements: Mapping[str, Sequence[str]], every: float, done: Callable[[], bool]
) -> int:
    """Put the tables in doubt and heal them, one after the other, until `done`. Return how many doubts were healed."""
    settings, states, healed = load(pipeline.config), TableStates(), 0
    async with following(settings.kafka, names.table_states_topic(settings.name), 0) as topic:

        async def until(condition: Callable[[], bool]) -> None:
            async with asyncio.timeout(_TIMEOUT):
                while not condition():
                    for key, value in await topic.take():
                        states.apply(key, value)

        tables = cycle(statements)
        while not done():
            name, begin = ("bench", next(tables)), time.monotonic()
            await run(pipeline.source, *statements[name[1]])
            await until(lambda name=name: name in states.doubts)
            await write_backfills(settings, new_backfills([name], clean=True))
            await until(lambda name=name: name not in states.doubts)
            healed += 1
            await asyncio.sleep(begin + every - time.monotonic())
    return healed


if __name__ == "__main__":
    main()

"""One, two and four pipelines on one source: rows a second against processors, and what limits a pipeline.

All read the same binlog of four tables from one MariaDB, and write through one Redis to one Kafka. Each captures its
share of the tables and skips the rows of the others. `taskset` can limit the processors of the whole bench.
"""

import argparse
import asyncio
import os
import signal
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass

from delivered import consuming, wait_until_committed
from environment import Environment, cpu, create, environment, pipeline_of, verify
from pipeline import OPTIONS, PROCESSES
from redis.asyncio import Redis
from report import Result, report
from rich.progress import track
from row_changes import COUNT
from served import CLIENT_CPU, CONSOLE, Log, pin, served
from workloads import FOUR_TABLE_WORKLOADS, FOUR_TABLES, Workload

from databus_core import names
from devstack import Server
from devstack.pipeline import Pipeline

FORMATS = ("databus", "debezium-json")
SERVICES = ("reader", "publisher")
#: processes that can use only one processor
SINGLE = {*SERVICES, "redis"}
#: a reader keeps its lease while it is stopped
READER = {"start": "earliest", "election": {"renew": "30s"}}
#: for so many processors the speed is calculated
TARGET = 16
_ALL, _ONE = frozenset(os.sched_getaffinity(0)), frozenset({CLIENT_CPU})


@dataclass(frozen=True)
class Case:
    """A number of pipelines, and the processors on which their processes may run."""

    pipelines: int
    services: frozenset[int]
    servers: frozenset[int]

    @property
    def name(self) -> str:
        name = f"{self.pipelines} pipeline{'s' * (self.pipelines > 1)}"
        if self.services == _ALL:
            return name
        return f"{name}, {'all' if self.servers == self.services else 'services'} on {len(self.services)} CPU"


#: as many processors as there are
WIDE = {pipelines: Case(pipelines, _ALL, _ALL) for pipelines in (1, 2, 4)}
NARROW = [Case(pipelines, _ONE, servers) for servers in (_ONE, _ALL - _ONE) for pipelines in (1, 4)]


@dataclass(frozen=True)
class Figures:
    """The figures of one run; a row is a row of the log, which one of the pipelines captures."""

    #: rows a second, of all pipelines together
    pace: float
    #: µs CPU a row, by kind of process, of all pipelines together
    cost: dict[str, float]
    #: µs CPU a row of the busiest process of SINGLE
    busiest: float

    @property
    def limit(self) -> float:
        """Rows a second at which the busiest process needs a whole processor."""
        return 1e6 / self.busiest

    @property
    def total(self) -> float:
        """µs CPU a row, of all processes."""
        return sum(self.cost.values())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=1, help="0.1 writes and reads a tenth, for a quick check")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--only", choices=[*FOUR_TABLE_WORKLOADS], help="run only this workload")
    options.add_argument("--format", choices=FORMATS, help="only this format of the messages")
    chosen = options.parse_args()
    if len(_ALL) < 2:
        raise SystemExit("bench: at least two processors are needed")
    formats, results = [chosen.format] if chosen.format else FORMATS, []
    with environment() as env:
        for name, workload in FOUR_TABLE_WORKLOADS.items():
            if chosen.only in (None, name):
                results += speed(name, workload, chosen.scale, chosen.runs, env, formats)
    report("scale", results)


def speed(
    name: str, workload: Workload, scale: float, runs: int, env: Environment, formats: Sequence[str]
) -> list[Result]:
    """Measure all cases in all formats alternately."""
    ways = [(message_format, case) for message_format in formats for case in (*WIDE.values(), *NARROW)]
    figures: dict[tuple[str, Case], list[Figures]] = {way: [] for way in ways}
    load = []
    with served(f"scale-{name}", workload, "mariadb", scale) as (server, log, pid):
        env.pids["mariadb"] = pid
        deliver(WIDE[1], server, log, env, formats[0])  # warms up the page cache and Kafka's JVM
        for way in track(ways * runs, f"delivering {name}", console=CONSOLE):
            load.append(os.getloadavg()[0])
            figures[way].append(deliver(way[1], server, log, env, way[0]))
    results = [Result(f"{name}: load average before a run", "processes", load)]
    for message_format in formats:
        title = f"{name}, {message_format}"
        for case in WIDE.values():
            results += _wide(f"{title}: {case.name}", figures[message_format, case])
        for case in NARROW:
            paces = [run.pace for run in figures[message_format, case]]
            results.append(Result(f"{title}: {case.name}", "rows/s", paces))
        alone, four = (figures[message_format, WIDE[pipelines]] for pipelines in (1, 4))
        # together, the four readers skip three times the rows of the log
        skipped = [(b.cost["reader"] - a.cost["reader"]) / 3 for a, b in zip(alone, four, strict=True)]
        results.append(Result(f"{title}: reader, a skipped row", "µs CPU/row", skipped))
    return results


def _wide(title: str, runs: list[Figures]) -> list[Result]:
    """Return the speed, the CPU of each process, and the speed calculated for more processors."""
    at_target = [min(run.limit, TARGET * 1e6 / run.total) for run in runs]
    return [
        Result(title, "rows/s", [run.pace for run in runs]),
        *(Result(f"{title}: {process}", "µs CPU/row", [run.cost[process] for run in runs]) for process in PROCESSES),
        Result(f"{title}: limit, calculated", "rows/s", [run.limit for run in runs]),
        Result(f"{title}: CPUs for the limit", "CPUs", [run.limit * run.total / 1e6 for run in runs]),
        Result(f"{title}: on {TARGET} CPUs, calculated", "rows/s", at_target),
    ]


def deliver(case: Case, server: Server, log: Log, env: Environment, message_format: str) -> Figures:
    """Let new pipelines publish their tables' rows, and fail unless all topics have as many as the log."""
    publisher = {"format": message_format, "options": OPTIONS.get(message_format, {})}
    shares = [FOUR_TABLES[first :: case.pipelines] for first in range(case.pipelines)]
    with ExitStack() as stack:
        pipelines = []
        for tables in shares:
            sections = {"source": {"include": tables}, "reader": READER}
            pipelines.append(stack.enter_context(pipeline_of(server, env, "earliest", publisher, **sections)))
        topics = [f"{p.name}.{table}" for p, tables in zip(pipelines, shares, strict=True) for table in tables]
        for topic in topics:
            create(env.kafka, topic)
        for pipeline in pipelines:
            pipeline.spawn("publisher")
        for pipeline in pipelines:
            pipeline.wait("publisher")
        figures = asyncio.run(_timed(pipelines, case, log, env))
    for topic in topics:
        verify(topic, env.kafka, topic, COUNT[message_format], log.rows // len(FOUR_TABLES))
    return figures


async def _timed(pipelines: list[Pipeline], case: Case, log: Log, env: Environment) -> Figures:
    """Start the readers; measure from their first entries with rows until all rows are committed."""
    async with AsyncExitStack() as stack:
        progress = [
            await stack.enter_async_context(consuming(env.kafka, names.progress_topic(pipeline.name)))
            for pipeline in pipelines
        ]
        readers = [await _stopped_reader(pipeline, env) for pipeline in pipelines]
        services = [(service, pipeline.pid(service)) for pipeline in pipelines for service in SERVICES]
        processes = [*env.pids.items(), *services]
        for kind, pid in processes:
            pin(pid, case.services if kind in SERVICES else case.servers)
        before, begin = [cpu(pid) for _, pid in processes], time.perf_counter()
        for pid in readers:
            os.kill(pid, signal.SIGCONT)
        await asyncio.gather(*(wait_until_committed(consumer, log) for consumer in progress))
        wall = time.perf_counter() - begin
    used = [(cpu(pid) - earlier) / log.rows * 1e6 for (_, pid), earlier in zip(processes, before, strict=True)]
    costs = [(kind, one) for (kind, _), one in zip(processes, used, strict=True)]  # µs a row, of each process
    by_kind = {process: sum(one for kind, one in costs if kind == process) for process in PROCESSES}
    return Figures(log.rows / wall, by_kind, max(one for kind, one in costs if kind in SINGLE))


async def _stopped_reader(pipeline: Pipeline, env: Environment) -> int:
    """Start a reader, and stop it (SIGSTOP) when it has sent its first rows; return its process id."""
    stream = names.stream_key(pipeline.name)
    async with Redis.from_url(env.redis.url, socket_timeout=None) as redis:
        pid = pipeline.spawn("reader").pid
        if not await redis.xread({stream: "1-0"}, block=30_000):  # 1-0 has the start position
            raise SystemExit(f"bench: a reader did not start; see {pipeline.log('reader')}")
        os.kill(pid, signal.SIGSTOP)
    return pid


if __name__ == "__main__":
    main()

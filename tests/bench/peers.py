"""Debezium, Maxwell and canal beside our services: rows a second, CPU, memory, and the latency of a commit.

All read the same binlog from the same MariaDB, one after another, and write to one Kafka; they share the processors.
Ours writes the format of each peer, exactly once; the peers promise at least once.
"""

import argparse
import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pymysql
from aiokafka import TopicPartition
from delivered import consuming
from environment import Environment, cpu, environment, peak_memory, take
from peer_latency import latency
from peer_systems import SYSTEMS, Running
from report import Result, report
from rich.progress import track
from row_changes import COUNT
from served import CONSOLE, Log, served
from workloads import WORKLOADS, Workload

from devstack import Server
from devstack.server import DevstackError

#: More rows of W1s than in other benches: peers need many seconds until their code is compiled.
SCALES = {"W1m": 1, "W1s": 5, "W2": 1}
#: A run ends this many seconds after its first record, also if more rows are left.
SECONDS = 20
#: a run is complete when its topic has not grown for so many seconds
IDLE = 6
#: seconds between two samples
PERIOD = 0.025
#: seconds between two checks that the system has not failed
CHECK_PERIOD = 2
#: if the first record comes later than so many seconds after the start, the bench fails
FIRST = 180
#: goals: our speed on W1s divided by that of the peer
GOALS = {"Debezium": 12, "Maxwell": 5, "canal": 12}


@dataclass(frozen=True)
class Sample:
    """What was seen at one time, in seconds."""

    time: float
    #: end of the topic: readable records, and the markers of transactions
    end: int
    #: CPU time of each process, in seconds
    cpu: dict[str, float]


@dataclass(frozen=True)
class Figures:
    """The figures of one run, after the system's warm-up."""

    #: rows a second
    pace: float
    #: µs CPU a row, by process
    cpu: dict[str, float]
    #: bytes: peak memory of all processes together
    peak: int


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=1, help="0.1 writes and reads a tenth, for a quick check")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--seconds", type=float, default=SECONDS, help="a run ends so long after its first record")
    options.add_argument("--only", choices=(*WORKLOADS, "latency"), action="append", help="only this; can be repeated")
    options.add_argument("--system", choices=[*SYSTEMS], action="append", help="only this; can be repeated")
    chosen = options.parse_args()
    systems, results = chosen.system or [*SYSTEMS], []
    with environment() as env:
        for name, workload in WORKLOADS.items():
            if not chosen.only or name in chosen.only:
                results += speed(name, workload, chosen.scale, chosen.runs, chosen.seconds, systems, env)
        if not chosen.only or "latency" in chosen.only:
            results += latency(systems, chosen.runs, chosen.seconds, env)
    report("peers", results)


def speed(
    name: str, workload: Workload, scale: float, runs: int, seconds: float, systems: list[str], env: Environment
) -> list[Result]:
    """Measure the systems alternately; return the speed, CPU and memory of each, and how ours compares."""
    figures: dict[str, list[Figures]] = defaultdict(list)
    load = []
    with served(f"peers-{name}", workload, "mariadb", scale * SCALES[name]) as (server, log, pid):
        env.pids["mariadb"] = pid
        with _table(server, workload):
            for system in track(systems * runs, f"delivering {name}", console=CONSOLE):
                load.append(os.getloadavg()[0])
                figures[system].append(_run(system, server, log, seconds, env))
    results = [Result(f"{name}: load average before a run", "processes", load)]
    for system in systems:
        of_system = figures[system]
        results.append(Result(f"{name}: {system}", "rows/s", [run.pace for run in of_system]))
        for process in of_system[0].cpu:
            costs = [run.cpu[process] for run in of_system]
            results.append(Result(f"{name}: {system}: {process}", "µs CPU/row", costs))
        results.append(Result(f"{name}: {system}: memory", "MB", [run.peak / 1e6 for run in of_system]))
        for peer in [peer for peer in SYSTEMS[system].peers if peer in figures]:
            times = [one.pace / other.pace for one, other in zip(of_system, figures[peer], strict=True)]
            goal = GOALS.get(peer) if name == "W1s" else None
            results.append(Result(f"{name}: {system}", "times as fast", times, peer, goal))
    return results


def _run(name: str, server: Server, log: Log, seconds: float, env: Environment) -> Figures:
    """Let a system deliver the log; fail unless all rows arrive or, if the time was too short, no more than all."""
    system = SYSTEMS[name]
    with system.start(server, log.file, env) as running:
        samples = asyncio.run(_watch(running, seconds, env))
        peak = sum(peak_memory(pid) for pid in running.pids.values())
    rows = take(env.kafka, running.topic, COUNT[system.format])
    first, last = next(sample for sample in samples if sample.end), samples[-1]
    if rows > log.rows or (rows < log.rows and last.time - first.time < seconds):
        raise SystemExit(f"bench: {name} delivered {rows} row changes instead of {log.rows}")
    begin = [sample for sample in samples if sample.end <= last.end * system.warm_up][-1]
    end = next(sample for sample in samples if sample.end == last.end)
    measured = rows * (1 - begin.end / last.end)
    cost = {process: (end.cpu[process] - used) / measured * 1e6 for process, used in begin.cpu.items()}
    return Figures(measured / (end.time - begin.time), cost, peak)


async def _watch(running: Running, seconds: float, env: Environment) -> list[Sample]:
    """Watch the end of a system's topic until it does not grow any more, or the time is over."""
    samples: list[Sample] = []
    pids, partition = running.pids | {"kafka": env.pids["kafka"]}, TopicPartition(running.topic, 0)
    async with consuming(env.kafka, running.topic) as consumer:
        begin = checked = time.monotonic()
        first = grown = 0.0
        while not first or (samples[-1].time < first + seconds and samples[-1].time < grown + IDLE):
            await asyncio.sleep(PERIOD)
            end = (await consumer.end_offsets([partition]))[partition]
            now = time.monotonic()
            if end > (samples[-1].end if samples else 0):
                first, grown = first or now, now
            elif not first and now > begin + FIRST:
                raise DevstackError(f"no record after {FIRST} s; see {running.folder}")
            if now > checked + CHECK_PERIOD:
                running.check()
                checked = now
            samples.append(Sample(now, end, {name: cpu(pid) for name, pid in pids.items()}))
    return samples


@contextmanager
def _table(server: Server, workload: Workload) -> Iterator[None]:
    """Create the workload's table without rows and without logging it: peers read its structure from the server."""
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    with pymysql.connect(**login) as connection:
        # Maxwell logs a warning for each statement in its own schema that is annotated.
        connection.query("SET GLOBAL binlog_annotate_row_events = OFF")
        for statement in ("SET sql_log_bin = 0", "CREATE OR REPLACE DATABASE bench", workload.table):
            connection.query(statement)
        yield
        connection.query("DROP DATABASE bench")


if __name__ == "__main__":
    main()

"""The latency from a row's commit until it can be read from Kafka, of our services and of their peers."""

import asyncio
import os
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass

import pymysql
from delivered import consuming
from environment import Environment, cpu
from latency import Ids, database, measure
from peer_systems import SYSTEMS, Running
from report import Result
from rich.progress import track
from row_changes import IDS
from served import CONSOLE
from writer import Pace

from devstack import Server
from devstack.server import DevstackError

#: single-row transactions a second
RATE, CONNECTIONS = 1_000, 2
#: Java compiles a system's code in these seconds; they are not measured
WARM_UP_SECONDS = 8
#: if no row comes later than so many seconds after the start, the bench fails
FIRST = 180
PERCENTILES = (50, 99)


@dataclass(frozen=True)
class Figures:
    """The figures of one run."""

    #: seconds, of each row
    latencies: list[float]
    #: share of one processor, in percent, by process
    cpu: dict[str, float]


def latency(systems: list[str], runs: int, seconds: float, env: Environment) -> list[Result]:
    """Measure the systems alternately, each in a new process that begins with the binlog of the moment."""
    figures: dict[str, list[Figures]] = defaultdict(list)
    load = []
    with database() as (server, _):
        for system in track(systems * runs, "measuring latency", console=CONSOLE):
            load.append(os.getloadavg()[0])
            figures[system].append(_run(system, server, seconds, env))
    results = [Result("latency: load average before a run", "processes", load)]
    for system, of_system in figures.items():
        for p in PERCENTILES:
            values = [statistics.quantiles(run.latencies, n=100)[p - 1] * 1000 for run in of_system]
            results.append(Result(f"latency: {system}: p{p}", "ms", values))
        for process in of_system[0].cpu:
            results.append(Result(f"latency: {system}: {process}", "% CPU", [run.cpu[process] for run in of_system]))
    return results


def _run(name: str, server: Server, seconds: float, env: Environment) -> Figures:
    """Start a system, wait until it streams, and measure."""
    system = SYSTEMS[name]
    ids = IDS[system.format]
    file = _new_table(server)
    pace = Pace(server.host, server.port, server.user, server.password, 0, RATE, WARM_UP_SECONDS, CONNECTIONS)
    with system.start(server, file, env) as running:
        asyncio.run(_until_streaming(running, server, env.kafka, ids))
        asyncio.run(measure(pace, env.kafka, running.topic, ids))
        pids = running.pids | {"kafka": env.pids["kafka"]}
        before = {process: cpu(pid) for process, pid in pids.items()}
        pace = Pace(
            server.host, server.port, server.user, server.password, RATE * WARM_UP_SECONDS, RATE, seconds, CONNECTIONS
        )
        latencies = asyncio.run(measure(pace, env.kafka, running.topic, ids))
        used = {process: (cpu(pid) - before[process]) / seconds * 100 for process, pid in pids.items()}
    return Figures(latencies, used)


def _new_table(server: Server) -> str:
    """Create the table anew, and return the new binlog file, which does not contain it."""
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    with pymysql.connect(**login) as connection, connection.cursor() as cursor:
        for statement in (
            # canal publishes the text of each annotated statement, and Maxwell logs a warning.
            "SET GLOBAL binlog_annotate_row_events = OFF",
            "CREATE OR REPLACE TABLE bench.t (id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL)",
            "FLUSH BINARY LOGS",
            "SHOW MASTER STATUS",
        ):
            cursor.execute(statement)
        return str(cursor.fetchone()[0])


async def _until_streaming(running: Running, server: Server, kafka: Server, ids: Ids) -> None:
    """Insert rows with negative ids until one of them is readable, then wait for the others."""
    login = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    until, row, seen = time.monotonic() + FIRST, 0, 0
    with pymysql.connect(**login, autocommit=True) as connection:
        async with consuming(kafka, running.topic) as consumer:
            while not seen or seen > row:
                running.check()
                if time.monotonic() > until:
                    raise DevstackError(f"no row after {FIRST} s; see {running.folder}")
                if not seen:
                    row -= 1
                    connection.query(f"INSERT INTO bench.t VALUES ({row}, 0)")
                for records in (await consumer.getmany(timeout_ms=250)).values():
                    seen = min(number for record in records for number in ids(record.value))

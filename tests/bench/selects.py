"""Read whole tables by SELECT: packed by our compiled code, against cell by cell by asyncmy (CPU and wall clock)."""

import argparse
import random
from pathlib import Path

import pymysql
from readers import Run, Task, run_script
from report import Result, report
from rich.progress import track
from selected import SELECTORS
from served import CLIENT_CPU, CONSOLE, SERVER_CPU, pin
from workloads import WORKLOADS, Workload

from devstack import Kind, Server, Stack

RUNS = 5


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--server", choices=("mariadb", "mysql"), default="mariadb")
    options.add_argument("--scale", type=float, default=1, help="0.1 fills tables of a tenth, for a quick check")
    chosen = options.parse_args()
    CONSOLE.print(f"server on processor {SERVER_CPU}, reader on {CLIENT_CPU}; {RUNS} runs of each reader, alternately")
    results = []
    for name in ("W1m", "W2"):
        results += speed(name, WORKLOADS[name], chosen.server, chosen.scale)
    report("select" if chosen.server == "mariadb" else "select-mysql", results)


def speed(name: str, workload: Workload, kind: Kind, scale: float) -> list[Result]:
    """Read a table alternately; return the CPU, the speed and the peak memory of each reader, and how ours compares."""
    stack = Stack(Path(".devstack/bench") / f"select-{name}-{scale:g}", own=True)
    server = stack.start(kind, "--innodb-buffer-pool-size=1G")
    try:
        rows = fill(server, name, workload, scale)
        pin(next(status.pid for status in stack.status() if status.kind == kind))
        read("packed", server, rows)  # brings the table into the buffer pool
        runs: dict[str, list[Run]] = {reader: [] for reader in SELECTORS}
        for reader in track([*SELECTORS] * RUNS, f"reading {name}", console=CONSOLE):
            runs[reader].append(read(reader, server, rows))
    finally:
        stack.stop(kind)
    ratios = [theirs.cpu / ours.cpu for theirs, ours in zip(runs["cells"], runs["packed"], strict=True)]
    faster = [theirs.wall / ours.wall for theirs, ours in zip(runs["cells"], runs["packed"], strict=True)]
    return [
        *(Result(f"{name}: {by}", "µs CPU/row", [run.cpu / rows * 1e6 for run in done]) for by, done in runs.items()),
        *(Result(f"{name}: {by}", "rows/s", [rows / run.wall for run in done]) for by, done in runs.items()),
        *(Result(f"{name}: {by}", "MB", [run.peak / 1e6 for run in done], worst=True) for by, done in runs.items()),
        Result(f"{name}: CPU", "times less", ratios, "cells"),
        Result(f"{name}: wall clock", "times as fast", faster, "cells"),
    ]


def fill(server: Server, name: str, workload: Workload, scale: float) -> int:
    """Fill the workload's table unless an earlier run has done it; return the number of its rows."""
    draw, batches = random.Random(7), max(1, round(workload.batches * scale))
    connection = pymysql.connect(host=server.host, port=server.port, user=server.user, password=server.password)
    with connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES LIKE 'bench'")
        if not cursor.fetchone():
            for statement in ("SET sql_log_bin = 0", "CREATE DATABASE bench", workload.table, "SET autocommit = 0"):
                cursor.execute(statement)
            for batch in track(range(batches), f"filling {name}", console=CONSOLE):
                for statement in workload.statements(draw, batch):
                    cursor.execute(statement)
            connection.commit()
        cursor.execute("SELECT COUNT(*) FROM bench.t")
        ((rows,),) = cursor.fetchall()
    if not rows:
        raise SystemExit(f"bench: {server.kind} has an empty table of an aborted run: remove .devstack/bench")
    return int(rows)


def read(reader: str, server: Server, rows: int) -> Run:
    """Let a reader read the table in a new process, and fail unless it counted all rows."""
    task = Task(reader, server.host, server.port, server.user, server.password, "", 0, CLIENT_CPU)
    result = run_script("selected.py", task)
    if result.count != rows:
        raise SystemExit(f"bench: {reader} counted {result.count} instead of {rows}")
    return result


if __name__ == "__main__":
    main()

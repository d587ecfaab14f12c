"""Decode real binlogs: our decoder against python-mysql-replication (CPU) and against the bare socket (wall clock).

All read the same log from the same server, taking turns, each run in a fresh process.
"""

import argparse

from readers import READERS, Run, Task, fresh
from report import Result, report
from rich.progress import track
from served import CLIENT_CPU, CONSOLE, SERVER_CPU, Log, served
from workloads import LARGE, LARGE_COMPRESSED, WORKLOADS, Workload

from devstack import Kind, Server

RUNS = 7
#: times less CPU than the library, and percent of the bare socket's speed
GOALS = {"W1m": (90, 40), "W1s": (200, 50), "W2": (90, 30)}
MEMORY_GOAL = 100  # MB


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--server", choices=("mariadb", "mysql"), default="mariadb", help="without goals on MySQL")
    options.add_argument("--scale", type=float, default=1, help="0.1 writes and reads a tenth, to see that it works")
    options.add_argument("--memory", action="store_true", help="read transactions of 1 GB too, from both servers")
    chosen = options.parse_args()
    CONSOLE.print(f"server on processor {SERVER_CPU}, reader on {CLIENT_CPU}; {RUNS} runs each, in turns")
    results = []
    for name, workload in WORKLOADS.items():
        results += speed(name, workload, chosen.server, chosen.scale)
    if chosen.memory:
        results += memory("large", LARGE, "mariadb", chosen.scale)
        results += memory("large-compressed", LARGE_COMPRESSED, "mysql", chosen.scale)
    report("decode" if chosen.server == "mariadb" else "decode-mysql", results)


def speed(name: str, workload: Workload, kind: Kind, scale: float) -> list[Result]:
    """Let all readers read a workload in turns; gives CPU and wall time of each, and the ratios that have goals."""
    cost: dict[str, list[float]] = {reader: [] for reader in READERS}  # µs CPU a row
    pace: dict[str, list[float]] = {reader: [] for reader in READERS}  # rows/s
    with served(name, workload, kind, scale) as (server, log, _):
        run("drain", server, log)  # brings the log into memory
        for reader in track([*READERS] * RUNS, f"reading {name}", console=CONSOLE):
            took = run(reader, server, log)
            rows = log.rows // 10 if reader == "library" else log.rows
            cost[reader].append(took.cpu / rows * 1e6)
            pace[reader].append(rows / took.wall)
    times, percent = GOALS[name] if kind == "mariadb" else (None, None)
    ratios = [theirs / ours for theirs, ours in zip(cost["library"], cost["ours"], strict=True)]
    shares = [ours / drain * 100 for ours, drain in zip(pace["ours"], pace["drain"], strict=True)]
    return [
        *(Result(f"{name}: {reader}", "µs CPU/row", runs) for reader, runs in cost.items()),
        *(Result(f"{name}: {reader}", "rows/s", runs) for reader, runs in pace.items()),
        Result(f"{name}: CPU", "times less", ratios, "library", times),
        Result(f"{name}: wall clock", "% of its speed", shares, "drain", percent),
    ]


def memory(name: str, workload: Workload, kind: Kind, scale: float) -> list[Result]:
    """Read one large transaction; gives the most memory that the process had."""
    with served(name, workload, kind, scale) as (server, log, _):
        peaks = [run("ours", server, log).peak / 1e6 for _ in track(range(RUNS), f"reading {name}", console=CONSOLE)]
    return [Result(f"{name}: memory", "MB", peaks, goal=MEMORY_GOAL, at_most=True, worst=True)]


def run(reader: str, server: Server, log: Log) -> Run:
    """Let a reader read the log in a fresh process, and see that it missed nothing."""
    task = Task(reader, server.host, server.port, server.user, server.password, log.file, log.tenth, CLIENT_CPU)
    took = fresh("readers.py", task)
    wanted = {"drain": log.size, "library": log.images // 10}.get(reader, log.images)
    if took.count < wanted or (reader != "drain" and took.count > wanted):
        raise SystemExit(f"bench: {reader} counted {took.count} instead of {wanted}")
    return took


if __name__ == "__main__":
    main()

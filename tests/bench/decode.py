"""Decode real binlogs: our decoder against python-mysql-replication (CPU) and against the bare socket (wall clock).

All readers read the same log from the same server, alternately, and each run is a new process.
"""

import argparse

from readers import READERS, Run, Task, run_script
from report import Result, report
from rich.progress import track
from served import CLIENT_CPU, CONSOLE, SERVER_CPU, Log, served
from workloads import LARGE, LARGE_COMPRESSED, WORKLOADS, Workload

from devstack import Kind, Server

RUNS = 7
#: the library's CPU time divided by ours
CPU_GOALS = {"W1m": 90, "W1s": 200, "W2": 90}
#: our speed in percent of the bare socket's
SPEED_GOALS = {"W1m": 40, "W1s": 50, "W2": 30}
#: peak memory of a reader's process, in MB
MEMORY_GOAL = 100


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--server", choices=("mariadb", "mysql"), default="mariadb", help="goals are for MariaDB only")
    options.add_argument("--scale", type=float, default=1, help="0.1 writes and reads a tenth, for a quick check")
    options.add_argument("--memory", action="store_true", help="also read one transaction of 1 GB from each server")
    chosen = options.parse_args()
    CONSOLE.print(f"server on processor {SERVER_CPU}, reader on {CLIENT_CPU}; {RUNS} runs of each reader, alternately")
    results = []
    for name, workload in WORKLOADS.items():
        results += speed(name, workload, chosen.server, chosen.scale)
    if chosen.memory:
        results += memory("large", LARGE, "mariadb", chosen.scale)
        results += memory("large-compressed", LARGE_COMPRESSED, "mysql", chosen.scale)
    report("decode" if chosen.server == "mariadb" else "decode-mysql", results)


def speed(name: str, workload: Workload, kind: Kind, scale: float) -> list[Result]:
    """Let the readers read a workload alternately; return the CPU and speed of each, and how ours compares."""
    cost: dict[str, list[float]] = {reader: [] for reader in READERS}  # µs CPU a row
    pace: dict[str, list[float]] = {reader: [] for reader in READERS}  # rows/s
    with served(name, workload, kind, scale) as (server, log, _):
        run("drain", server, log)  # brings the log into the page cache
        for reader in track([*READERS] * RUNS, f"reading {name}", console=CONSOLE):
            result = run(reader, server, log)
            rows = log.rows // 10 if reader == "library" else log.rows
            cost[reader].append(result.cpu / rows * 1e6)
            pace[reader].append(rows / result.wall)
    cpu_goal, speed_goal = (CPU_GOALS[name], SPEED_GOALS[name]) if kind == "mariadb" else (None, None)
    ratios = [theirs / ours for theirs, ours in zip(cost["library"], cost["ours"], strict=True)]
    shares = [ours / drain * 100 for ours, drain in zip(pace["ours"], pace["drain"], strict=True)]
    return [
        *(Result(f"{name}: {reader}", "µs CPU/row", runs) for reader, runs in cost.items()),
        *(Result(f"{name}: {reader}", "rows/s", runs) for reader, runs in pace.items()),
        Result(f"{name}: CPU", "times less", ratios, "library", cpu_goal),
        Result(f"{name}: wall clock", "% of its speed", shares, "drain", speed_goal),
    ]


def memory(name: str, workload: Workload, kind: Kind, scale: float) -> list[Result]:
    """Read one large transaction; return the reader's peak memory."""
    with served(name, workload, kind, scale) as (server, log, _):
        peaks = [run("ours", server, log).peak / 1e6 for _ in track(range(RUNS), f"reading {name}", console=CONSOLE)]
    return [Result(f"{name}: memory", "MB", peaks, goal=MEMORY_GOAL, at_most=True, worst=True)]


def run(reader: str, server: Server, log: Log) -> Run:
    """Let a reader read the log in a new process, and fail unless it counted what the log contains."""
    task = Task(reader, server.host, server.port, server.user, server.password, log.file, log.tenth, CLIENT_CPU)
    result = run_script("readers.py", task)
    expected = {"drain": log.size, "library": log.images // 10}.get(reader, log.images)
    # drain counts the packets' headers, too
    if result.count < expected or (reader != "drain" and result.count > expected):
        raise SystemExit(f"bench: {reader} counted {result.count} instead of {expected}")
    return result


if __name__ == "__main__":
    main()

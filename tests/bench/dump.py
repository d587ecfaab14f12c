"""Dump tables to files: dump-api's engine in its formats, against mariadb-dump | zstd and mydumper, alternately.

The tables are those of W1m, with 5 million rows, and of W2, with 1 million. Server and programs share the processors.
"""

import argparse
import os
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from dumped import DumpTask
from environment import cpu
from readers import Run, run_script
from report import Result, report
from rich.progress import track
from selects import fill
from served import CONSOLE
from workloads import WORKLOADS

from devstack import Server, Stack, cache, debs

#: workload → how many times as many rows as in bench-select
SCALES = {"W1m": 5, "W2": 4}
#: the formats of dump-api
OURS = ("jsonl", "parquet")
BASELINE = "mariadb-dump | zstd"
#: measured once: gzip, its only compression, takes minutes
SLOW = "mydumper"
#: programs of others
THEIRS = {
    BASELINE: "{mariadb-dump} --single-transaction --quick {login} bench t | zstd -q -o {folder}/t.sql.zst",
    SLOW: "{mydumper} {login} --threads 2 --rows 500000 --compress -B bench -o {folder}/out",
}
#: goals, as ratios to the baseline, and of Parquet to JSON lines
WALL_GOAL, CPU_GOAL, PARQUET_GOAL = 0.5, 1.0, 1.5
_INSTALLED = ("mariadb-dump", "mydumper")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=1, help="0.1 dumps tables of a tenth, for a quick check")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--connections", type=int, default=2, help="dumps.connections")
    options.add_argument("--only", choices=[*SCALES], help="only this table")
    chosen = options.parse_args()
    results = []
    for name, factor in SCALES.items():
        if chosen.only in (None, name):
            results += speed(name, factor * chosen.scale, chosen.runs, chosen.connections)
    report("dump", results)


def speed(name: str, scale: float, runs: int, connections: int) -> list[Result]:
    """Dump a table by each program in turn; return what each takes, and how ours compares."""
    stack = Stack(Path(".devstack/bench") / f"select-{name}-{scale:g}", own=True)
    server = stack.start("mariadb", "--innodb-buffer-pool-size=2G")
    done: dict[str, list[Run]] = {program: [] for program in (*OURS, *THEIRS)}
    served: dict[str, list[float]] = {program: [] for program in done}
    try:
        rows = fill(server, name, WORKLOADS[name], scale)
        pid = next(status.pid for status in stack.status() if status.kind == "mariadb")
        dump(OURS[0], server, connections, rows)  # brings the table into the buffer pool
        rounds = [*done, *[program for program in done if program != SLOW] * (runs - 1)]
        for program in track(rounds, f"dumping {name}", console=CONSOLE):
            before = cpu(pid or 0)
            done[program].append(dump(program, server, connections, rows))
            served[program].append(cpu(pid or 0) - before)
    finally:
        stack.stop("mariadb")
    return [
        *(Result(f"{name}: {by}", "s", [run.wall for run in each]) for by, each in done.items()),
        *(Result(f"{name}: {by}", "µs CPU/row", [run.cpu / rows * 1e6 for run in each]) for by, each in done.items()),
        *(Result(f"{name}: {by}: server", "µs CPU/row", [each / rows * 1e6 for each in s]) for by, s in served.items()),
        *(Result(f"{name}: {by}", "MB", [run.peak / 1e6 for run in done[by]], worst=True) for by in OURS),
        *(Result(f"{name}: {by}", "MB of files", [run.count / 1e6 for run in each]) for by, each in done.items()),
        ratio(f"{name}: jsonl: wall clock", "wall", done, "jsonl", BASELINE, WALL_GOAL),
        ratio(f"{name}: jsonl: CPU", "cpu", done, "jsonl", BASELINE, CPU_GOAL),
        ratio(f"{name}: parquet: wall clock", "wall", done, "parquet", "jsonl", PARQUET_GOAL),
        ratio(f"{name}: parquet: CPU", "cpu", done, "parquet", "jsonl", PARQUET_GOAL),
    ]


def ratio(name: str, figure: str, done: dict[str, list[Run]], ours: str, theirs: str, goal: float) -> Result:
    """Compare two programs round by round."""
    pairs = zip(done[ours], done[theirs], strict=True)
    ratios = [getattr(one, figure) / getattr(other, figure) for one, other in pairs]
    return Result(name, "times as much", ratios, theirs, goal, at_most=True)


def dump(program: str, server: Server, connections: int, rows: int) -> Run:
    """Dump the table into a new folder; return the run, with the bytes of the files as `count`."""
    with TemporaryDirectory(dir=".devstack/bench") as folder:
        if program in OURS:
            login = (server.host, server.port, server.user, server.password)
            run = run_script("dumped.py", DumpTask(*login, program, connections, folder))
            if run.count != rows:
                raise SystemExit(f"bench: the dump has {run.count} rows instead of {rows}")
        else:
            run = run_command(THEIRS[program], server, folder)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return Run(size, run.wall, run.cpu, run.peak)


def run_command(command: str, server: Server, folder: str) -> Run:
    """Run a command of a shell, and measure it with all its processes."""
    login = f"-h {server.host} -P {server.port} -u {server.user} --password={shlex.quote(server.password)}"
    programs = {name: shlex.join(debs.command(installed(), f"usr/bin/{name}")) for name in _INSTALLED}
    text = "set -o pipefail; " + command.format_map({"login": login, "folder": folder, **programs})
    begin = perf_counter()
    process = subprocess.Popen(["bash", "-c", text])
    _, status, usage = os.wait4(process.pid, 0)
    wall = perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bench: a program failed: {command}")
    return Run(0, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def installed() -> Path:
    """Return the folder of the unpacked programs."""
    say = CONSOLE.print
    return cache.installed(
        "dump-tools", lambda folder: debs.unpack("mariadb", "mydumper", folder, say, alone="mariadb-client")
    )


if __name__ == "__main__":
    main()

"""Decoding on a real MariaDB: CPU time a row, ours against python-mysql-replication on the same binlog.

Bulk inserts (`bulk`: 100 rows a transaction) and single-row transactions (`single`). Each run is a process of its own,
the two decoders take turns, and the socket is included on both sides.
"""

import asyncio
import logging
import resource
import subprocess
import sys
from pathlib import Path

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent
from report import Result, report

from databus_binlog import Position, Rows, connect
from devstack import Server, Stack, shop

RUNS = 5
#: rows, rows a transaction
WORKLOADS = {"bulk": (200_000, 100), "single": (20_000, 1)}
DECODERS = ("databus", "mysql-replication")


async def fill(server: Server, workload: str) -> str:
    """Write a workload into a binlog file of its own; gives its name."""
    rows, size = WORKLOADS[workload]
    connection = await shop.connect(server)
    async with connection, connection.cursor() as cursor:
        await cursor.execute("CREATE DATABASE IF NOT EXISTS bench")
        await cursor.execute("CREATE OR REPLACE TABLE bench.t (id INT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60))")
        await cursor.execute("FLUSH BINARY LOGS")
        await cursor.execute("SHOW MASTER STATUS")
        file, *_ = await cursor.fetchone()
        for start in range(0, rows, size):
            values = ",".join(
                f"({n}, {n * 7}, REPEAT({n % 10}, 119), REPEAT('x', 59))" for n in range(start, start + size)
            )
            await cursor.execute(f"INSERT INTO bench.t VALUES {values}")
        return str(file)


def measure(server: Server, decoder: str, file: str, rows: int) -> float:
    """Decode a workload in a fresh process; gives its CPU time in µs a row."""
    arguments = (decoder, server.host, str(server.port), server.user, server.password, file, str(rows))
    run = subprocess.run(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=True, timeout=300
    )
    return float(run.stdout) / rows * 1e6


def child(decoder: str, host: str, port: str, user: str, password: str, file: str, rows: str) -> None:
    """Decode until all rows have come, and print the CPU seconds it took."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    if decoder == "databus":
        asyncio.run(ours(host, int(port), user, password, file, int(rows)))
    else:
        theirs(host, int(port), user, password, file, int(rows))
    after = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}")


async def ours(host: str, port: int, user: str, password: str, file: str, wanted: int) -> None:
    rows = 0
    async with connect(host=host, port=port, user=user, password=password) as session:
        stream = await session.dump(Position(file=file, offset=4), server_id=4711)
        async for events in stream:
            for event in events:
                if type(event) is Rows:
                    rows += event.count
            if rows >= wanted:
                break


def theirs(host: str, port: int, user: str, password: str, file: str, wanted: int) -> None:
    reader = BinLogStreamReader(
        {"host": host, "port": port, "user": user, "passwd": password},
        server_id=4712,
        log_file=file,
        log_pos=4,
        resume_stream=True,
        only_events=[WriteRowsEvent],
        is_mariadb=False,
    )
    rows = 0
    for event in reader:
        rows += len(event.rows)
        if rows >= wanted:
            break
    reader.close()


def main() -> None:
    logging.getLogger("asyncmy").setLevel(logging.ERROR)
    stack = Stack(Path(".devstack/bench"))
    server = stack.start("mariadb")
    results = []
    try:
        for workload, (rows, _) in WORKLOADS.items():
            file = asyncio.run(fill(server, workload))
            cpu: dict[str, list[float]] = {decoder: [] for decoder in DECODERS}
            for _ in range(RUNS):
                for decoder in DECODERS:
                    cpu[decoder].append(measure(server, decoder, file, rows))
            results += [Result(f"{workload}: {decoder}", "µs CPU a row", runs) for decoder, runs in cpu.items()]
            ratios = [theirs / ours for ours, theirs in zip(*cpu.values(), strict=True)]
            results.append(Result(f"{workload}: ratio", "times", ratios, "mysql-replication"))
    finally:
        stack.stop("mariadb")
    report("decode", results)


if __name__ == "__main__":
    child(*sys.argv[1:]) if len(sys.argv) > 1 else main()

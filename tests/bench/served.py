"""Servers of the bench: one for each workload, its binlog written once and kept."""

import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pymysql
from rich.console import Console
from rich.progress import track
from workloads import Workload

from devstack import Kind, Server, Stack

#: The server has the first processor to itself, and who reads from it the last.
SERVER_CPU, *_, CLIENT_CPU = sorted(os.sched_getaffinity(0)) * 2
CONSOLE = Console(stderr=True)


@dataclass(frozen=True)
class Log:
    """A workload in a binlog: from the start of `file` to where the log ends."""

    file: str
    size: int  #: bytes
    rows: int
    images: int
    #: where the first tenth of the rows ends, for a reader that would take minutes for all
    tenth: int


@contextmanager
def served(name: str, workload: Workload, kind: Kind, scale: float) -> Iterator[tuple[Server, Log, int]]:
    """Start the server that has this workload in its binlog, and write it if it is new; gives its process id too."""
    stack = Stack(Path(".devstack/bench") / f"{name}-{scale:g}", own=True)  # it is filled and pinned
    server = stack.start(kind)
    try:
        kept = stack.home / kind / "log.json"
        if not kept.exists():
            kept.write_text(json.dumps(asdict(_write(server, name, workload, scale))))
        pid = next(status.pid for status in stack.status() if status.kind == kind)
        _pin(pid)
        yield server, Log(**json.loads(kept.read_text())), pid
    finally:
        stack.stop(kind)


def _write(server: Server, name: str, workload: Workload, scale: float) -> Log:
    """Write the workload into files of its own, in the format that the bench is about."""
    draw, batches = random.Random(7), max(10, round(workload.batches * scale) // 10 * 10)
    connection = pymysql.connect(host=server.host, port=server.port, user=server.user, password=server.password)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@binlog_row_image, @@binlog_row_metadata, @@binlog_checksum")
        if cursor.fetchone() != ("FULL", "FULL", "CRC32"):
            raise SystemExit(f"bench: {server.kind} must log FULL row images, FULL row metadata and CRC32 checksums")
        if server.kind == "mariadb":
            cursor.execute("SET binlog_annotate_row_events = OFF")
        for statement in ("DROP DATABASE IF EXISTS bench", "CREATE DATABASE bench", workload.table, workload.session):
            cursor.execute(statement)
        cursor.execute("FLUSH BINARY LOGS")
        file, tenth = _end(cursor)
        for batch in track(range(batches), f"writing {name}", console=CONSOLE):
            if batch == batches // 10:
                _, tenth = _end(cursor)
            for statement in workload.statements(draw, batch):
                cursor.execute(statement)
        connection.commit()
        _, size = _end(cursor)
        for statement in ("SET sql_log_bin = 0", "DROP DATABASE bench"):
            cursor.execute(statement)
    return Log(file, size, batches * workload.rows, batches * workload.images, tenth)


def _end(cursor: Any) -> tuple[str, int]:
    """Tell the file that is written to, and its size."""
    cursor.execute("SHOW BINARY LOGS")
    file, size, *_ = cursor.fetchall()[-1]
    return str(file), int(size)


def _pin(pid: int | None) -> None:
    """Keep all threads of the server, and those that they start, on its processor."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {SERVER_CPU})

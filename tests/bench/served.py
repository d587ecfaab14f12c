"""Database servers for the benches: one for each workload, scale and kind. Their binlogs are written once and kept."""

import json
import os
import random
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pymysql
from rich.console import Console
from rich.progress import track
from workloads import Workload

from devstack import Kind, Server, Stack

_CPUS = sorted(os.sched_getaffinity(0))
#: the processor of the database server
SERVER_CPU = _CPUS[0]
#: the processor on which readers.py runs
CLIENT_CPU = _CPUS[-1]
CONSOLE = Console(stderr=True)


@dataclass(frozen=True)
class Log:
    """The binlog file that contains exactly one workload."""

    file: str
    #: bytes
    size: int
    #: row changes
    rows: int
    #: row images; an update has two
    images: int
    #: offset at which the first tenth of the rows ends, unless all are in one transaction.
    #: python-mysql-replication reads only these rows, because it is slow.
    tenth: int


@contextmanager
def served(name: str, workload: Workload, kind: Kind, scale: float) -> Iterator[tuple[Server, Log, int]]:
    """Start a workload's server; if its binlog lacks the workload, write that; yield server, log and process id."""
    # `own=True` ignores servers that environment variables name: we must not fill them or pin them to a processor.
    stack = Stack(Path(".devstack/bench") / f"{name}-{scale:g}", own=True)
    server = stack.start(kind)
    try:
        description = stack.home / kind / "log.json"
        if not description.exists():
            description.write_text(json.dumps(asdict(_write(server, name, workload, scale))))
        pid = next(status.pid for status in stack.status() if status.kind == kind)
        pin(pid)
        yield server, Log(**json.loads(description.read_text())), pid
    finally:
        stack.stop(kind)


def _write(server: Server, name: str, workload: Workload, scale: float) -> Log:
    """Execute the workload on the server, and return the new binlog file that contains it."""
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
        connection.commit()  # for workloads without autocommit
        _, size = _end(cursor)
        for statement in ("SET sql_log_bin = 0", "DROP DATABASE bench"):
            cursor.execute(statement)
    return Log(file, size, batches * workload.rows, batches * workload.images, tenth)


def _end(cursor: Any) -> tuple[str, int]:
    """Return the newest binlog file and its size."""
    cursor.execute("SHOW BINARY LOGS")
    file, size, *_ = cursor.fetchall()[-1]
    return str(file), int(size)


def pin(pid: int | None, cpus: Set[int] = frozenset({SERVER_CPU})) -> None:
    """Pin all threads of a process to the processors `cpus`; threads that they start inherit it."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), cpus)

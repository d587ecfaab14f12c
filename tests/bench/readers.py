"""The readers that the benches compare. Each run is a new process.

As a script, this module reads a `Task` from standard input and writes a `Run` to standard output.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import pymysql
from pymysql.constants.COMMAND import COM_BINLOG_DUMP
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import RowsEvent, UpdateRowsEvent

from databus_binlog import EventStream, Login, Position, Rows, commands
from databus_binlog.session import connect

SERVER_ID = 4711
#: A run reads the log again until this many seconds have passed: other load on the machine would distort a shorter run.
SHORTEST = 0.6


@dataclass(frozen=True)
class Task:
    """What to read: the log from the start of `file`; `library` and baseline.py read it only up to `tenth`."""

    #: one of READERS or, for baseline.py, the variant of the baseline
    reader: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    file: str
    #: offset at which the first tenth of the rows ends
    tenth: int
    #: the processor to run on; baseline.py uses all
    cpu: int


@dataclass(frozen=True)
class Run:
    """The result of a run. Times begin after the dump command; if the log was read several times, they are averages."""

    #: row images read; bytes for `drain`
    count: int
    #: seconds
    wall: float
    #: CPU time, user and system, in seconds
    cpu: float
    #: peak memory of the process, in bytes
    peak: int


class Clock:
    """Adds up the times of its `with` blocks. Readers log in before them, so logins are not measured."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self._wall, self._cpu = perf_counter(), process_time()

    def __exit__(self, *_: object) -> None:
        self.wall += perf_counter() - self._wall
        self.cpu += process_time() - self._cpu


def drain(task: Task, clock: Clock) -> int:
    """Count the bytes that the server sends, and discard them. This shows how fast the server can send."""
    login = {"host": task.host, "port": task.port, "user": task.user, "password": task.password}
    connection = pymysql.connect(**login, ssl_disabled=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @mariadb_slave_capability = 4,"
            " @source_binlog_checksum = @@GLOBAL.binlog_checksum"
        )
    command = commands.dump(task.file, 4, SERVER_ID, commands.NON_BLOCK)
    connection._execute_command(COM_BINLOG_DUMP, command[1:])
    buffer, count = bytearray(1 << 20), 0
    with clock:
        while size := connection._sock.recv_into(buffer):  # the server disconnects at the end of the log
            count += size
    return count


def library(task: Task, clock: Clock) -> int:
    """Read with python-mysql-replication and its default options; only a tenth of the log, because it is slow."""
    count = 0
    with library_events(task) as events, clock:
        for event in events:
            if isinstance(event, RowsEvent):
                count += len(event.rows) * (2 if isinstance(event, UpdateRowsEvent) else 1)
    return count


@contextmanager
def library_events(task: Task) -> Iterator[Iterator[Any]]:
    """Log in with python-mysql-replication, and yield the events of the first tenth of the log.

    The connection is closed at the end, because the log may be read again with the same server id.
    """
    login = {"host": task.host, "port": task.port, "user": task.user, "passwd": task.password}
    positions = {"log_file": task.file, "log_pos": 4, "end_log_pos": task.tenth}
    stream = BinLogStreamReader(login, server_id=SERVER_ID, resume_stream=True, **positions)
    events = iter(stream)
    next(events)  # logs in, and reads the artificial rotate event with which each binlog stream begins
    try:
        yield events
    finally:
        stream.close()


async def ours(task: Task, clock: Clock) -> int:
    """Read with databus_binlog, which writes all values as text to `events.data`, without Python objects."""
    count = 0
    async with dumping(task) as stream:
        with clock:
            async for events in stream:
                count += events.images
    return count


async def objects(task: Task, clock: Clock) -> int:
    """Read with databus_binlog, making Python objects of all events and values."""
    count = 0
    async with dumping(task) as stream:
        with clock:
            async for events in stream:
                for event in events:
                    if type(event) is Rows:
                        count += len(event.images())
    return count


@asynccontextmanager
async def dumping(task: Task) -> AsyncIterator[EventStream]:
    login = Login(host=task.host, port=task.port, user=task.user, password=task.password)
    async with connect(login) as session:
        yield await session.dump(Position(file=task.file, offset=4), server_id=SERVER_ID, follow=False)


def run_script(script: str, task: Any) -> Run:
    """Run a script of this folder on a task, a dataclass, in a new process."""
    command = [sys.executable, str(Path(__file__).with_name(script))]
    done = subprocess.run(
        command, input=json.dumps(asdict(task)), stdout=subprocess.PIPE, text=True, check=True, timeout=600
    )
    return Run(**json.loads(done.stdout))


READERS = {reader.__name__: reader for reader in (drain, library, ours, objects)}


def main() -> None:
    task = Task(**json.load(sys.stdin))
    os.sched_setaffinity(0, {task.cpu})
    clock, counts = Clock(), []
    while clock.wall < SHORTEST:
        result = READERS[task.reader](task, clock)
        counts.append(asyncio.run(result) if asyncio.iscoroutine(result) else result)
    json.dump(asdict(Run(min(counts), clock.wall / len(counts), clock.cpu / len(counts), peak())), sys.stdout)


def peak() -> int:
    """Return the peak memory of this process, in bytes."""
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024


if __name__ == "__main__":
    main()

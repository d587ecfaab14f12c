"""A consistent snapshot of the database (an InnoDB read view), opened together with its binlog position.

MariaDB reports the binlog position that a read view belongs to. A read view contains the transactions that the engine
has committed. The binlog, and with it Kafka, may already be ahead, so a view that is behind the end of the binlog is
replaced by a new one. On MySQL, a global read lock covers the two statements that open the view and read the position.
The server grants this lock after running commits have ended, so the view is not behind the binlog.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from asyncmy.constants import ER
from asyncmy.cursors import SSCursor
from asyncmy.errors import MySQLError

from databus.errors import SourceNotReady, SourceUnavailable
from databus.events import Row
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.settings import Source
from databus_binlog import MariaDbGtidPosition, Position
from databus_binlog.driver import log_in
from databus_binlog.session import Session
from databus_dump_api.select import Select
from databus_dump_api.source import answering, execute, server_errors

log = get_logger(__name__)

#: bytes of cell data after which a batch, one line of a dump file, is complete
_BATCH = 64 * 1024
#: seconds to wait for MySQL's global read lock; other sessions' writes wait meanwhile
_LOCK_TIMEOUT = 5
#: seconds to wait until MariaDB has committed what is in its binlog; a commit may wait for a semi-sync replica
_COMMIT_TIMEOUT = 60
_COMMIT_PAUSE = 0.05
#: seconds that the server waits for us to read its rows
_WRITE_TIMEOUT = 3600

_SESSION = (
    "SET NAMES utf8mb4",
    f"SET SESSION time_zone = '+00:00', sql_mode = '', net_write_timeout = {_WRITE_TIMEOUT}",
    # With READ COMMITTED the server would silently open no snapshot.
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)
_NO_TIME_LIMIT = {
    "mariadb": "SET SESSION max_statement_time = 0",
    "mysql": "SET SESSION max_execution_time = 0",
}
_START = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


@dataclass(frozen=True)
class View:
    """An open read view: all rows are as of `position`."""

    position: Position
    _connection: Any
    _user: str

    async def batches(self, select: Select) -> AsyncGenerator[list[Row], None]:
        """Stream a table's rows in batches of about 64 KiB. DDL on the table waits at least until `release_table`."""
        with server_errors(self._user, "SELECT"):
            await execute(self._connection, "SAVEPOINT before_table")
            cursor = self._connection.cursor(SSCursor)
            async with answering():
                await cursor.execute(select.sql)
            while batch := await _next_batch(cursor, select):
                with self._paused():
                    yield batch

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Stop reading from the socket during the block; otherwise asyncmy would buffer the rest of the table."""
        transport = self._connection._transport  # asyncmy has no flow control of its own
        transport.pause_reading()
        yield
        transport.resume_reading()

    async def release_table(self) -> None:
        """Release the metadata lock on the table read last, so that DDL on it can proceed; the view stays open.

        If `_disable_binlog` was not permitted, MariaDB keeps the lock until the view is closed.
        """
        with server_errors(self._user, "SELECT"):
            await execute(self._connection, "ROLLBACK TO SAVEPOINT before_table")


async def _next_batch(cursor: Any, select: Select) -> list[Row]:
    """Read the next rows, of about 64 KiB; none at the end of the table."""
    batch: list[Row] = []
    size = 0
    async with answering():
        async for cells in cursor:
            batch.append(select.row(cells))
            size += sum(len(cell) for cell in cells if cell is not None)
            if size >= _BATCH:
                break
    return batch


@asynccontextmanager
async def open_view(source: Source, host: str, session: Session) -> AsyncIterator[View]:
    """Open a view on a new connection to `host`; `session` is another connection to the same host.

    Raises SourceUnavailable, SourceNotReady or BinlogError.
    """
    connection = await log_in(source.login(host), use_unicode=False, conv={})  # cells as the bytes that the server sent
    try:
        mariadb = session.server.flavor == "mariadb"
        with server_errors(source.user, "RELOAD"):
            for statement in (*_SESSION, _NO_TIME_LIMIT[session.server.flavor]):
                await execute(connection, statement)
            position = await (_start_mariadb(connection, session) if mariadb else _start_mysql(connection, session))
        yield View(position, connection, source.user)
    finally:
        # This sends no COM_QUIT: a server that is still sending rows reads no command.
        connection.close()


async def _start_mariadb(connection: Any, session: Session) -> Position:
    """Open views until one contains everything that is in the binlog now."""
    await _disable_binlog(connection)
    end = await session.current_position()
    try:
        async with asyncio.timeout(_COMMIT_TIMEOUT):
            while True:
                view = await _start_mariadb_once(connection)
                if includes(view, end):
                    return view
                await asyncio.sleep(_COMMIT_PAUSE)
    except TimeoutError as error:
        raise SourceUnavailable(
            f"transactions before {end.file}:{end.offset} are in the binlog but were not committed within "
            f"{_COMMIT_TIMEOUT} s: wait for semi-synchronous replicas to acknowledge them, then request a new dump"
        ) from error


async def _start_mariadb_once(connection: Any) -> Position:
    """Open a view in place of the connection's previous one, and return its position."""
    await execute(connection, _START)
    status = dict(await execute(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
    file, offset = status.get(b"Binlog_snapshot_file", b"").decode(), int(status.get(b"Binlog_snapshot_position", 0))
    if not file:
        raise SourceNotReady(
            "log_bin is OFF: without a binlog a dump has no position; set log_bin and restart the server"
        )
    ((gtids,),) = await execute(connection, f"SELECT BINLOG_GTID_POS('{file}', {offset})")
    if gtids is None:
        raise SourceNotReady(f"binlog file {file} was purged while the dump was started; request a new dump")
    return Position(gtids.decode(), file, offset)


def includes(view: Position, end: Position) -> bool:
    """Return whether a view at position `view` contains all transactions before `end`.

    If the GTID positions are equal, there are only events without a GTID between the two, for instance a ROTATE.
    """
    return _file_and_offset(view) >= _file_and_offset(end) or _gtids(view) == _gtids(end)


def _file_and_offset(position: Position) -> tuple[int, int]:
    return int(position.file.rpartition(".")[2]), position.offset


def _gtids(position: Position) -> str:
    return str(MariaDbGtidPosition.from_text(position.gtid_set))


async def _disable_binlog(connection: Any) -> None:
    """Disable the session's binary logging, if permitted.

    While it is enabled, MariaDB keeps the metadata locks of dumped tables until the view is closed.
    """
    try:
        await execute(connection, "SET SESSION sql_log_bin = 0")
    except MySQLError as error:
        if error.args[0] != ER.SPECIFIC_ACCESS_DENIED_ERROR:
            raise
        advice = "with BINLOG ADMIN granted to the user, it waits only until its table is read"
        log.info(LogEvent.DUMP_BLOCKS_DDL, f"DDL on a dumped table waits until the dump ends; {advice}")


async def _start_mysql(connection: Any, session: Session) -> Position:
    """Open a view and read the position under a global read lock."""
    await execute(connection, f"SET SESSION lock_wait_timeout = {_LOCK_TIMEOUT}")
    await _lock(connection)  # if a later step fails, the connection is closed, which releases the lock
    await execute(connection, _START)
    position = await session.current_position()
    await execute(connection, "UNLOCK TABLES")
    await execute(connection, "SET SESSION lock_wait_timeout = DEFAULT")
    return position


async def _lock(connection: Any) -> None:
    try:
        await execute(connection, "FLUSH TABLES WITH READ LOCK")
    except MySQLError as error:
        if error.args[0] != ER.LOCK_WAIT_TIMEOUT:
            raise
        raise SourceUnavailable(
            f"FLUSH TABLES WITH READ LOCK, needed for a moment, did not get the lock within {_LOCK_TIMEOUT} s: "
            "wait for long statements and LOCK TABLES to end, then request a new dump"
        ) from error

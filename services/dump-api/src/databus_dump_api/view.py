"""A consistent view of the database, tied to the position it was taken at.

MariaDB says itself which position a view belongs to. A view is of what the engine has committed, which may be less than
the log, and Kafka with it, already has: a view that is behind the log's end is opened again. On MySQL a global read
lock is held around the two statements that open the view and read the position, and nothing else; to get it is to wait
for the commits that are under way.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from asyncmy.constants import ER
from asyncmy.cursors import SSCursor
from asyncmy.errors import MySQLError

from databus.errors import SchemaMismatch, SourceNotReady, SourceUnavailable
from databus.events import Row
from databus.settings import Source
from databus_binlog import MariaDbGtidPosition, Position
from databus_binlog.driver import log_in
from databus_binlog.errors import from_server
from databus_binlog.session import Session
from databus_dump_api.select import Select

log = logging.getLogger("databus")

#: cells of this many bytes make a line of a dump
_BATCH = 64 * 1024
#: seconds that writers may be kept waiting for while MySQL's lock is asked for
_LOCK_TIMEOUT = 5
#: seconds that commits may take from MariaDB's log to its engine: a semi-synchronous one waits for a replica meanwhile
_COMMIT_TIMEOUT = 60
_COMMIT_PAUSE = 0.05
#: seconds the server waits while we are busy with what it has sent
_SLOWEST_WRITE = 3600

_SESSION = (
    "SET NAMES utf8mb4",
    f"SET SESSION time_zone = '+00:00', sql_mode = '', net_write_timeout = {_SLOWEST_WRITE}",
    # READ COMMITTED would take no view at all, silently.
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
)
_NO_TIME_LIMIT = {
    "mariadb": "SET SESSION max_statement_time = 0",
    "mysql": "SET SESSION max_execution_time = 0",
}
_START = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


@dataclass(frozen=True)
class View:
    """An open view; all its rows are as of `position`."""

    position: Position
    _connection: Any
    _user: str

    async def batches(self, select: Select) -> AsyncGenerator[list[Row], None]:
        """Stream a table in batches of about 64 KiB. Its definition is locked until `let_go`."""
        with _translated(self._user, "SELECT"):
            await _execute(self._connection, "SAVEPOINT before_table")
            cursor = self._connection.cursor(SSCursor)
            await cursor.execute(select.sql)
            batch: list[Row] = []
            size = 0
            async for cells in cursor:
                batch.append(select.row(cells))
                size += sum(len(cell) for cell in cells if cell is not None)
                if size >= _BATCH:
                    with self._paused():
                        yield batch
                    batch, size = [], 0
            if batch:
                yield batch

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Leave the rest to the server meanwhile; asyncmy would go on to take in the whole table."""
        transport = self._connection._transport  # asyncmy has no flow control of its own
        transport.pause_reading()
        yield
        transport.resume_reading()

    async def let_go(self) -> None:
        """Let DDL on the last table pass; the view stays."""
        with _translated(self._user, "SELECT"):
            await _execute(self._connection, "ROLLBACK TO SAVEPOINT before_table")


@asynccontextmanager
async def open_view(source: Source, host: str, session: Session) -> AsyncIterator[View]:
    """Open a view on a connection of its own to the host; `session` is another one to it.

    Raises SourceUnavailable, SourceNotReady or BinlogError.
    """
    connection = await log_in(source.login(host), use_unicode=False, conv={})  # every cell as the bytes the server sent
    try:
        mariadb = session.server.flavor == "mariadb"
        with _translated(source.user, "RELOAD"):
            for statement in (*_SESSION, _NO_TIME_LIMIT[session.server.flavor]):
                await _execute(connection, statement)
            position = await (_start_mariadb(connection, session) if mariadb else _start_mysql(connection, session))
        yield View(position, connection, source.user)
    finally:
        # Not a friendly goodbye: that would first read what is left of a large table.
        connection.close()


async def _start_mariadb(connection: Any, session: Session) -> Position:
    """Open views until one has everything that the log has now."""
    await _log_nothing(connection)
    end = await session.current_position()
    try:
        async with asyncio.timeout(_COMMIT_TIMEOUT):
            while True:
                view = await _view_mariadb(connection)
                if has(view, end):
                    return view
                await asyncio.sleep(_COMMIT_PAUSE)
    except TimeoutError as error:
        raise SourceUnavailable(
            f"what the log has up to {end.file}:{end.offset} was not committed within {_COMMIT_TIMEOUT} s: let commits "
            "that wait for the acknowledgement of a replica end, then request a new dump"
        ) from error


async def _view_mariadb(connection: Any) -> Position:
    """Open a view, in place of one that is open, and ask for its position."""
    await _execute(connection, _START)
    status = dict(await _execute(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
    file, offset = status.get(b"Binlog_snapshot_file", b"").decode(), int(status.get(b"Binlog_snapshot_position", 0))
    if not file:
        raise SourceNotReady("log_bin is OFF: a view has no position without a log; set log_bin and restart the server")
    ((gtids,),) = await _execute(connection, f"SELECT BINLOG_GTID_POS('{file}', {offset})")
    if gtids is None:
        raise SourceNotReady(f"{file} was purged while the view was opened; request a new dump")
    return Position(gtids.decode(), file, offset)


def has(view: Position, end: Position) -> bool:
    """Say whether a view has all transactions before `end`; what else lies between them is no transaction."""
    return _place(view) >= _place(end) or _gtids(view) == _gtids(end)


def _place(position: Position) -> tuple[int, int]:
    return int(position.file.rpartition(".")[2]), position.offset


def _gtids(position: Position) -> str:
    return str(MariaDbGtidPosition.from_text(position.gtid_set))


async def _log_nothing(connection: Any) -> None:
    """Let MariaDB free a table after it was read: while a transaction may be logged, it keeps the locks to its end."""
    try:
        await _execute(connection, "SET SESSION sql_log_bin = 0")
    except MySQLError as error:
        if error.args[0] != ER.SPECIFIC_ACCESS_DENIED_ERROR:
            raise
        log.info("DDL on a dumped table has to wait for the end of the dump; GRANT BINLOG ADMIN lets it pass earlier")


async def _start_mysql(connection: Any, session: Session) -> Position:
    await _execute(connection, f"SET SESSION lock_wait_timeout = {_LOCK_TIMEOUT}")
    await _lock(connection)  # if anything goes wrong from here on, the connection is closed, which frees the lock
    await _execute(connection, _START)
    position = await session.current_position()
    await _execute(connection, "UNLOCK TABLES")
    await _execute(connection, "SET SESSION lock_wait_timeout = DEFAULT")
    return position


async def _lock(connection: Any) -> None:
    try:
        await _execute(connection, "FLUSH TABLES WITH READ LOCK")
    except MySQLError as error:
        if error.args[0] != ER.LOCK_WAIT_TIMEOUT:
            raise
        raise SourceUnavailable(
            f"the view needs a global read lock for a moment and did not get it in {_LOCK_TIMEOUT} s: "
            "wait for long statements and LOCK TABLES to end, then request a new dump"
        ) from error


async def _execute(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    async with connection.cursor() as cursor:
        await cursor.execute(statement)
        return list(await cursor.fetchall())


@contextmanager
def _translated(user: str, grant: str) -> Iterator[None]:
    """Turn asyncmy's errors into those of our own sessions; `grant` is what the statements need."""
    try:
        yield
    except MySQLError as error:
        code, message = error.args if len(error.args) == 2 else (0, error)
        if code == ER.TABLE_DEF_CHANGED:
            raise SchemaMismatch("a table was changed by DDL during the dump; request a new dump") from error
        raise from_server(code, str(message), user=user, grant=grant) from error

"""A consistent snapshot of the database (an InnoDB read view), opened together with its binlog position.

MariaDB reports the binlog position that a read view belongs to. A read view contains the transactions that the engine
has committed. The binlog, and with it Kafka, may already be ahead, so a view that is behind the end of the binlog is
replaced by a new one. On MySQL, a global read lock covers the two statements that open the view and read the position.
The server grants this lock after running commits have ended, so the view is not behind the binlog.

MariaDB's position may be ahead of the view by XA COMMITs. If it executes any, it is locked as MySQL is. A view that
only has to contain everything before a position is opened again after the engine has committed them (`xa_commits`).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from databus_binlog import MariaDbGtidPosition, Position
from databus_binlog.errors import InvalidPosition, MissingPrivilege, TableChanged
from databus_binlog.row_batch import RowBatch
from databus_binlog.session import Session
from databus_changes.place import reached
from databus_changes.snapshot.connection import connect_snapshot
from databus_changes.snapshot.locks import lock_writes, unlock_writes
from databus_changes.snapshot.select import Select
from databus_changes.snapshot.xa_commits import executes_xa, finish_xa_commits, lock_without_xa_commits
from databus_core.errors import SchemaMismatch, SourceNotReady, SourceUnavailable
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.settings import Source

log = get_logger(__name__)

#: seconds to wait until MariaDB has committed what is in its binlog; a commit may wait for a semi-sync replica
_COMMIT_TIMEOUT = 60
_COMMIT_PAUSE = 0.01
_START = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
#: Reads three times the position of a MariaDB view, and how many XA COMMITs the server has begun: see `_start_one`.
_STATUS = " UNION ALL ".join(
    [
        "SELECT variable_name, variable_value FROM information_schema.global_status "
        "WHERE variable_name IN ('BINLOG_SNAPSHOT_FILE', 'BINLOG_SNAPSHOT_POSITION', 'COM_XA_COMMIT')"
    ]
    * 3
)


@dataclass(frozen=True)
class View:
    """An open read view: all rows are as of `position`."""

    position: Position
    _session: Session

    async def batches(self, select: Select) -> AsyncGenerator[RowBatch, None]:
        """Stream a table's rows in batches of about 64 KiB. DDL on the table waits at least until `release_table`."""
        await self._session.query("SAVEPOINT before_table")
        try:
            async with aclosing(self._session.select(select.sql, select.conversions)) as batches:
                async for batch in batches:
                    yield batch
        except TableChanged as error:
            raise SchemaMismatch("a table was changed by DDL during the dump; request a new dump") from error

    async def release_table(self) -> None:
        """Release the metadata lock on the table read last, so that DDL on it can proceed; the view stays open.

        If `_disable_binlog` was not permitted, MariaDB keeps the lock until the view is closed.
        """
        await self._session.query("ROLLBACK TO SAVEPOINT before_table")


@asynccontextmanager
async def open_view(source: Source, host: str) -> AsyncIterator[View]:
    """Open a view that contains everything that is in the binlog now, on a new connection to `host`.

    Raises SourceUnavailable, SourceNotReady or another FatalError.
    """
    async with connect_snapshot(source, host) as session:
        if session.server.flavor == "mariadb":
            await _disable_binlog(session)
        yield View(await start_current_view(session), session)


async def start_current_view(session: Session) -> Position:
    """Open a view that contains everything that is in the binlog now, in place of the session's previous one.

    Return its position. On MySQL, and on a MariaDB that has executed an XA COMMIT, this takes a global read lock for a
    moment, and needs RELOAD.
    """
    if session.server.flavor == "mysql":
        return await _start_mysql(session)
    view, executes_xa = await _start_behind(session, await session.current_position())
    if executes_xa:
        await lock_without_xa_commits(session)
        view = await _start_locked(session, partial(_log_end, session))
    return Position(await _gtids_at(session, view), view.file, view.offset)


async def needs_lock(session: Session) -> bool:
    """Return whether `start_current_view` takes a global read lock."""
    return session.server.flavor == "mysql" or await executes_xa(session)


async def start_view(session: Session, end: Position) -> None:
    """Open a view that contains everything before `end`, and maybe more. `end` has a file only if it is the server's.

    Only MySQL without GTIDs takes the lock of `start_current_view`; MariaDB needs RELOAD if XA transactions stay
    prepared. Raises SourceUnavailable if the server does not commit the transactions in time.
    """
    if session.server.flavor == "mariadb":
        _, executes_xa = await _start_behind(session, end)
        if executes_xa:
            await finish_xa_commits(session)
            await session.query(_START)
    elif not end.gtid_set:
        await _start_mysql(session)
    else:
        # The server adds a transaction to the set of executed ones after the engine has committed it.
        waiting = "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)"
        [(timed_out,)] = await session.query(waiting, (end.gtid_set, _COMMIT_TIMEOUT))
        if timed_out:
            raise _not_committed(end)
        await session.query(_START)


async def _start_behind(session: Session, end: Position) -> tuple[Position, bool]:
    """Open views until one contains everything before `end`. Return what `_start_one` returns of it."""
    try:
        async with asyncio.timeout(_COMMIT_TIMEOUT):
            while True:
                started = await _start_one(session)
                if started is None:
                    continue
                view, _ = started
                if includes(view, end):
                    return started
                # The server searches a file for the GTIDs, so they are compared only if they have to be.
                if includes(Position(await _gtids_at(session, view), view.file, view.offset), end):
                    return started
                await asyncio.sleep(_COMMIT_PAUSE)
    except TimeoutError as error:
        raise _not_committed(end) from error


async def _start_one(session: Session) -> tuple[Position, bool] | None:
    """Open a view in place of the session's previous one. Return its file and offset; None if they are not certain.

    Also return whether the server has begun an XA COMMIT since its start.

    MariaDB keeps what it prints of the position in memory that all sessions share. So another session that reads it,
    for instance that of a metrics exporter, may replace it, but hardly several times by the same wrong one.
    """
    await session.query(_START)
    answers: dict[str, set[str]] = {}
    for name, value in await session.query(_STATUS):
        answers.setdefault(str(name), set()).add(str(value))
    files, offsets = answers.get("BINLOG_SNAPSHOT_FILE", {""}), answers.get("BINLOG_SNAPSHOT_POSITION", set())
    if files == {""}:
        raise SourceNotReady("log_bin is OFF: without a binlog rows have no position; set log_bin, restart the server")
    if len(files) > 1 or len(offsets) > 1:
        return None
    return Position("", files.pop(), int(offsets.pop())), answers["COM_XA_COMMIT"] != {"0"}


async def _gtids_at(session: Session, view: Position) -> str:
    try:
        return await session.gtid_at(view.file, view.offset)
    except InvalidPosition as error:
        raise SourceNotReady(f"binlog file {view.file} was purged while a read view was opened; try again") from error


def includes(view: Position, end: Position) -> bool:
    """Return whether a MariaDB view at position `view` contains all transactions before `end`.

    A view that is behind `end` does, if it has the same GTIDs: there are only events without a GTID between the two,
    for instance a ROTATE.
    """
    if end.file and reached((view.file, view.offset), (end.file, end.offset)):
        return True
    seen, wanted = MariaDbGtidPosition.from_text(view.gtid_set), MariaDbGtidPosition.from_text(end.gtid_set)
    return bool(view.gtid_set) and seen.covers(wanted)


def _not_committed(end: Position) -> SourceUnavailable:
    return SourceUnavailable(
        f"transactions before {end.file}:{end.offset} are in the binlog but were not committed within "
        f"{_COMMIT_TIMEOUT} s: check that the semi-synchronous replicas acknowledge them"
    )


async def _disable_binlog(session: Session) -> None:
    """Disable the session's binary logging, if permitted.

    While it is enabled, MariaDB keeps the metadata locks of dumped tables until the view is closed.
    """
    try:
        await session.query("SET SESSION sql_log_bin = 0")
    except MissingPrivilege:
        advice = "with BINLOG ADMIN granted to the user, it waits only until its table is read"
        log.info(LogEvent.DUMP_BLOCKS_DDL, f"DDL on a dumped table waits until the dump ends; {advice}")


async def _start_mysql(session: Session) -> Position:
    await lock_writes(session)
    return await _start_locked(session, session.current_position)


async def _start_locked(session: Session, read_position: Callable[[], Awaitable[Position]]) -> Position:
    """Open a view and read its position, in a session that has the global read lock. Release the lock."""
    await session.query(_START)  # if a step fails, the connection is closed, which releases the lock
    position = await read_position()
    await unlock_writes(session)
    return position


async def _log_end(session: Session) -> Position:
    """Return the file and offset only: while writes wait, MariaDB should not search a file for the GTIDs."""
    file, offset, *_ = (await session.log_status())[0]
    return Position("", str(file), int(offset))

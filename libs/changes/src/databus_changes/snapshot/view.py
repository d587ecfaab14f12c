"""Opens consistent snapshots of the database (InnoDB read views) in sessions, together with their binlog position.

MariaDB reports the binlog position that a read view belongs to. A read view contains the transactions that the engine
has committed. The binlog, and with it Kafka, may already be ahead, so a view that is behind the end of the binlog is
replaced by a new one. On MySQL, a global read lock covers the two statements that open the view and read the position.
The server grants this lock after running commits have ended, so the view is not behind the binlog. Under such a lock,
and on a MariaDB that commits nothing meanwhile, several sessions open views of one position.

MariaDB's position may be ahead of the view by XA COMMITs. If it executes any, it is locked as MySQL is. A view that
only has to contain everything before a position is opened again after the engine has committed them (`xa_commits`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from databus_binlog import MariaDbGtidPosition, Position
from databus_binlog.errors import InvalidPosition
from databus_binlog.session import Session
from databus_changes.place import reached
from databus_changes.snapshot.locks import lock_writes, unlock_writes
from databus_changes.snapshot.xa_commits import executes_xa, finish_xa_commits, lock_without_xa_commits
from databus_core.errors import SourceNotReady, SourceUnavailable

#: seconds to wait until MariaDB has committed what is in its binlog; a commit may wait for a semi-sync replica
_COMMIT_TIMEOUT = 60
_COMMIT_PAUSE = 0.01
#: how often several sessions' views may have different positions before they are opened otherwise
_MOST_DIFFERENCES = 20
_START = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
#: Reads three times the position of a MariaDB view, and how many XA COMMITs the server has begun: see `_start_one`.
_STATUS = " UNION ALL ".join(
    [
        "SELECT variable_name, variable_value FROM information_schema.global_status "
        "WHERE variable_name IN ('BINLOG_SNAPSHOT_FILE', 'BINLOG_SNAPSHOT_POSITION', 'COM_XA_COMMIT')"
    ]
    * 3
)


async def start_current_view(session: Session) -> Position:
    """Open a view that contains everything that is in the binlog now, in place of the session's previous one.

    Return its position. On MySQL, and on a MariaDB that has executed an XA COMMIT, this takes a global read lock for a
    moment, and needs RELOAD.
    """
    if session.server.flavor == "mysql":
        return await start_under_lock([session])
    started = await start_behind([session], await session.current_position())
    if started is None or started[1]:
        return await start_under_lock([session])
    return await with_gtids(session, started[0])


async def start_under_lock(sessions: Sequence[Session]) -> Position:
    """Open views of one position, which contain everything that is in the binlog, under a global read lock.

    Needs RELOAD.
    """
    first = sessions[0]
    if first.server.flavor == "mysql":
        await lock_writes(first)
        return await _start_locked(sessions, first.current_position)
    await lock_without_xa_commits(first)
    return await with_gtids(first, await _start_locked(sessions, partial(_log_end, first)))


async def needs_lock(session: Session) -> bool:
    """Return whether `start_current_view` takes a global read lock."""
    return session.server.flavor == "mysql" or await executes_xa(session)


async def start_view(session: Session, end: Position) -> None:
    """Open a view that contains everything before `end`, and maybe more. `end` has a file only if it is the server's.

    Only MySQL without GTIDs takes the lock of `start_current_view`; MariaDB needs RELOAD if XA transactions stay
    prepared. Raises SourceUnavailable if the server does not commit the transactions in time.
    """
    if session.server.flavor == "mariadb":
        started = await start_behind([session], end)
        if started is None or started[1]:
            await finish_xa_commits(session)
            await session.query(_START)
    elif not end.gtid_set:
        await start_under_lock([session])
    else:
        # The server adds a transaction to the set of executed ones after the engine has committed it.
        waiting = "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)"
        [(timed_out,)] = await session.query(waiting, (end.gtid_set, _COMMIT_TIMEOUT))
        if timed_out:
            raise _not_committed(end)
        await session.query(_START)


async def start_behind(sessions: Sequence[Session], end: Position) -> tuple[Position, bool] | None:
    """Open MariaDB views of one position that contain everything before `end`, in place of the sessions' previous ones.

    Return what `_start_one` returns of them; None if they differ again and again, because others commit meanwhile.
    """
    differences = 0
    try:
        async with asyncio.timeout(_COMMIT_TIMEOUT):
            while differences < _MOST_DIFFERENCES:
                started, *others = await asyncio.gather(*map(_start_one, sessions))
                if any(other != started for other in others):
                    differences += 1
                elif started is not None:
                    if await _contains(sessions[0], started[0], end):
                        return started
                    await asyncio.sleep(_COMMIT_PAUSE)
    except TimeoutError as error:
        raise _not_committed(end) from error
    return None


async def _contains(session: Session, view: Position, end: Position) -> bool:
    # The server searches a file for the GTIDs, so they are compared only if they have to be.
    return includes(view, end) or includes(await with_gtids(session, view), end)


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


async def with_gtids(session: Session, view: Position) -> Position:
    """Add the GTIDs to the position of a MariaDB view. The server searches a file for them."""
    try:
        return Position(await session.gtid_at(view.file, view.offset), view.file, view.offset)
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


async def _start_locked(sessions: Sequence[Session], read_position: Callable[[], Awaitable[Position]]) -> Position:
    """Open views and read their position, while the first session has the global read lock. Release the lock."""
    # If a step fails, the connection is closed, which releases the lock.
    await asyncio.gather(*(session.query(_START) for session in sessions))
    position = await read_position()
    await unlock_writes(sessions[0])
    return position


async def _log_end(session: Session) -> Position:
    """Return the file and offset only: while writes wait, MariaDB should not search a file for the GTIDs."""
    file, offset, *_ = (await session.log_status())[0]
    return Position("", str(file), int(offset))

"""XA COMMITs that are in MariaDB's binlog, while a new read view does not contain their rows yet.

MariaDB writes an XA COMMIT to the binlog, lets the engine commit, and then removes the transaction from XA RECOVER. The
position of a read view does not wait for the engine. So a transaction that XA RECOVER does not list any more is
committed. One that it lists may be about to be, or is just prepared, maybe for days.

A lock that is granted after running commits have ended tells them apart, except on a replica: a thread that applies
transactions in parallel gives way to the lock between binlog and engine.
"""

import asyncio

from databus_binlog.session import Session
from databus_changes.snapshot.locks import lock_writes, pass_commits, unlock_writes
from databus_core.errors import SourceUnavailable

#: seconds until transactions that stay prepared on a replica are an error
_TIMEOUT = 60
_PAUSE = 0.01
#: how often XA RECOVER is read before a lock is taken: most transactions are prepared for milliseconds
_READS = 10
#: seconds between two locks, which let others write
_LOCK_PAUSE = 0.1


async def executes_xa(session: Session) -> bool:
    """Return whether the server has begun an XA COMMIT since its start."""
    return await _status(session, "Com_xa_commit") > 0


async def finish_xa_commits(session: Session) -> None:
    """Wait until the engine has committed each XA transaction whose XA COMMIT is in the binlog now. Ends a view.

    Raises SourceUnavailable if it cannot be known.
    """
    prepared = await _prepared(session)
    reads = 0
    try:
        async with asyncio.timeout(_TIMEOUT):
            while prepared:
                reads += 1
                if reads >= _READS and not await _is_replica(session):
                    await pass_commits(session)
                    return
                await asyncio.sleep(_PAUSE)
                prepared &= await _prepared(session)
    except TimeoutError as error:
        raise _undecided() from error


async def lock_without_xa_commits(session: Session) -> None:
    """Take the lock of `lock_writes` at a moment at which the engine has committed everything that is in the binlog.

    Raises SourceUnavailable if there is no such moment.
    """
    try:
        async with asyncio.timeout(_TIMEOUT):
            while True:
                await lock_writes(session)
                if not await _prepared(session) or not await _is_replica(session):
                    return
                await unlock_writes(session)
                await asyncio.sleep(_LOCK_PAUSE)
    except TimeoutError as error:
        raise _undecided() from error


async def _prepared(session: Session) -> set[tuple[object, ...]]:
    return set(await session.query("XA RECOVER"))


async def _is_replica(session: Session) -> bool:
    return await _status(session, "Slaves_running") > 0


async def _status(session: Session, name: str) -> int:
    [(_, value)] = await session.query("SHOW GLOBAL STATUS LIKE %s", (name,))
    return int(value)


def _undecided() -> SourceUnavailable:
    return SourceUnavailable(
        f"XA transactions stay prepared on this replica, so that for {_TIMEOUT} s it was not certain which rows a read "
        "view contains: commit or roll back those that XA RECOVER lists, or read from a host that is not a replica"
    )

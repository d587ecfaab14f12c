"""Locks that a server grants after running commits have ended. They are held for a moment."""

import asyncio

from databus_binlog.errors import LockTimeout
from databus_binlog.session import Session
from databus_core.errors import SourceUnavailable

#: Seconds that the attempts to take a lock wait for it. Other sessions' writes wait meanwhile, and the global read lock
#: can wait for them: for a statement that waits for a row, while the transaction that has the row waits for the global
#: lock. The server does not notice this. It ends when the attempt ends, so the first attempts are short.
_LOCK_TIMEOUTS = (1, 2, 5)
#: Seconds between two attempts, in which the others' statements go on.
_LOCK_PAUSE = 1
#: After this time in seconds without a statement, the server ends a session that has the lock, and releases it: if the
#: network fails at that moment, the server does not notice, and writes would wait for hours.
_LOCK_IDLE = 5


async def lock_writes(session: Session) -> None:
    """Take a global read lock. Closing the connection releases it. Needs RELOAD."""
    await _take(session, "FLUSH TABLES WITH READ LOCK")


async def unlock_writes(session: Session) -> None:
    """Release the lock of `lock_writes`; an open view stays open."""
    await _release(session, "UNLOCK TABLES")


async def block_commits(session: Session) -> None:
    """Block all commits on MariaDB after those that are running. Closing the connection releases them. Needs RELOAD.

    Unlike the global read lock, this waits for no statement that writes, except DDL.
    """
    await _take(session, "BACKUP STAGE START", "BACKUP STAGE BLOCK_COMMIT")


async def pass_commits(session: Session) -> None:
    """Wait until the commits that are running have ended. On MariaDB only; needs RELOAD, and ends a view."""
    await block_commits(session)
    await _release(session, "BACKUP STAGE END")


async def _take(session: Session, *statements: str) -> None:
    await session.query(f"SET SESSION wait_timeout = {_LOCK_IDLE}")
    for statement in statements:
        if not await _execute(session, statement):
            raise SourceUnavailable(
                f"{statement} got no lock in {len(_LOCK_TIMEOUTS)} attempts of up to {_LOCK_TIMEOUTS[-1]} s: wait for "
                "long statements, LOCK TABLES and backups to end, then try again"
            )


async def _execute(session: Session, statement: str) -> bool:
    """Execute a statement that takes a lock. Return whether it got the lock."""
    for timeout in _LOCK_TIMEOUTS:
        await session.query(f"SET SESSION lock_wait_timeout = {timeout}")
        try:
            await session.query(statement, grant="RELOAD")
        except LockTimeout:
            await asyncio.sleep(_LOCK_PAUSE)
        else:
            return True
    return False


async def _release(session: Session, statement: str) -> None:
    await session.query(statement)
    await session.query("SET SESSION lock_wait_timeout = DEFAULT, wait_timeout = DEFAULT")

"""Locks that a server grants after running commits have ended. They are held for a moment."""

from databus_binlog.errors import LockTimeout
from databus_binlog.session import Session
from databus_core.errors import SourceUnavailable

#: seconds to wait for a lock; other sessions' writes may wait meanwhile
_LOCK_TIMEOUT = 5
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
    await session.query(f"SET SESSION lock_wait_timeout = {_LOCK_TIMEOUT}, wait_timeout = {_LOCK_IDLE}")
    for statement in statements:
        try:
            await session.query(statement, grant="RELOAD")
        except LockTimeout as error:
            raise SourceUnavailable(
                f"{statement} got no lock within {_LOCK_TIMEOUT} s: wait for long statements, LOCK TABLES and backups "
                "to end, then try again"
            ) from error


async def _release(session: Session, statement: str) -> None:
    await session.query(statement)
    await session.query("SET SESSION lock_wait_timeout = DEFAULT, wait_timeout = DEFAULT")

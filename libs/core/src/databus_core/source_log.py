"""How far a pipeline is behind the end of a server's log, and how long the server keeps its log."""

from collections.abc import Mapping
from itertools import takewhile
from typing import NamedTuple

from databus_binlog import GtidSet, Position
from databus_binlog.session import Session
from databus_core.progress import Progress

_RETENTION = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
    "('binlog_expire_logs_seconds', 'binlog_expire_logs_auto_purge', 'expire_logs_days')"
)


class Lag(NamedTuple):
    """How far a pipeline is behind; None is not known."""

    #: time since the commit of the last transaction that was published or left out; 0 if there is no later one
    seconds: float | None
    #: bytes of the log behind the position; None also if the position is one of another server
    bytes: int | None


async def read_lag(session: Session, progress: Progress) -> Lag:
    """Compare the progress with the log's end. Needs REPLICATION CLIENT."""
    if progress.position is None:
        return Lag(None, None)
    end = await session.current_position()
    if _has_all(session, progress, end):
        return Lag(0.0, 0)
    now = await read_clock(session)  # the clock that `time_us` is of
    seconds = max(now - progress.time_us / 1e6, 0.0) if progress.time_us else None
    logs = await session.logs()
    before = log_offset(logs, progress.position) if progress.server == session.server.identity else None
    return Lag(seconds, None if before is None else sum(logs.values()) - before)


async def read_clock(session: Session) -> float:
    """Return the time by the server's clock, in seconds since the epoch."""
    [(now,)] = await session.query("SELECT UNIX_TIMESTAMP(SYSDATE(6))")
    return float(now)


def _has_all(session: Session, progress: Progress, end: Position) -> bool:
    """Return whether the log has no transaction behind the position."""
    position = progress.position or Position()
    if position.gtid_set and end.gtid_set:
        flavor = session.server.flavor
        return not GtidSet.parse(flavor, end.gtid_set).minus(GtidSet.parse(flavor, position.gtid_set))
    own = progress.server == session.server.identity
    return own and (position.file, position.offset) == (end.file, end.offset)


def log_offset(logs: Mapping[str, int], position: Position) -> int | None:
    """Return the bytes of the log before a position; None if the log does not have its file."""
    if position.file not in logs:
        return None
    return sum(logs[file] for file in takewhile(lambda each: each != position.file, logs)) + position.offset


async def read_retention(session: Session) -> float | None:
    """Return after how many seconds the server deletes a file of its log; None: it does not."""
    values = {str(name).lower(): str(value) for name, value in await session.query(_RETENTION)}
    if values.get("binlog_expire_logs_auto_purge") == "OFF":
        return None
    days = float(values.get("expire_logs_days", 0))
    return float(values.get("binlog_expire_logs_seconds", 0)) or days * 86400 or None

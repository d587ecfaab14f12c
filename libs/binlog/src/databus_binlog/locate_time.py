"""Finds where a server's log reaches a time: the first transaction that was committed then or later.

A transaction's commit time is the one that its events carry: MySQL's original commit time, in microseconds; where that
is not logged (MariaDB, MySQL before 8.0.1), the time of its first event, in seconds: when the statement that committed
it began.

Commit times do not always grow along the log: a long statement has the time of its beginning, and a replica logs the
times of its source. So the files are searched by the newest time near their beginning. That is never much before the
time when the file was created, and if it is later, only more of the log is read. See ADR 17.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

from databus_binlog.errors import InvalidPosition
from databus_binlog.events import AnyEvent, Gtid
from databus_binlog.login import Login
from databus_binlog.position import Position
from databus_binlog.session import connect
from databus_binlog.times import time_text
from databus_binlog.transaction_starts import TransactionStarts

#: bytes at the beginning of a file among whose events the newest one dates the file
_HEAD_BYTES = 64 * 1024
_SECOND_US = 1_000_000


async def locate_time(login: Login, time_us: int, *, server_id: int) -> Position:
    """Return file and offset of the first transaction that was committed at `time_us`, in µs since 1970, or later.

    It is the first one in the order of the log; transactions after it may have earlier times. If the log has only
    seconds, the time's fraction is ignored, so that no transaction of that second is left out.

    Raises InvalidPosition if the log does not go back to this time, or ends before it.
    """
    async with connect(login) as session:
        files = list(await session.logs())
    second_us = time_us - time_us % _SECOND_US
    first = await _last_before(login, files, second_us, server_id)
    newest_us, is_oldest, starts = 0, first == 0, TransactionStarts()
    async with _events(login, files[first], server_id) as events:
        async for event in events:
            newest_us = max(newest_us, _time_us(event))
            if not starts.is_start(event):
                continue
            if _time_us(event) < (time_us if _has_microseconds(event) else second_us):
                is_oldest = False
                continue
            if is_oldest:
                raise InvalidPosition(
                    f"the server's log begins with a transaction of {time_text(_time_us(event))}, so it may lack "
                    f"others since {time_text(time_us)}: choose a later time, or earliest"
                )
            return Position(file=event.file, offset=event.start)
    raise InvalidPosition(
        f"the server's log has no transaction of {time_text(time_us)} or later, it ends at {time_text(newest_us)}: "
        "choose an earlier time, or latest"
    )


async def file_at(login: Login, time_us: int, *, server_id: int) -> str:
    """Return the last file that was begun before a time, in µs since 1970; the oldest file if there is none."""
    async with connect(login) as session:
        files = list(await session.logs())
    return files[await _last_before(login, files, time_us, server_id)]


async def _last_before(login: Login, files: Sequence[str], time_us: int, server_id: int) -> int:
    """Return the index of the last file that was begun before a time; 0 if there is none. Reads each file's head."""
    low, high = 0, len(files)  # the files before `low` were begun before the time, those from `high` on were not
    while low < high:
        middle = (low + high) // 2
        if await _begun_us(login, files[middle], server_id) < time_us:
            low = middle + 1
        else:
            high = middle
    return max(0, low - 1)


async def _begun_us(login: Login, file: str, server_id: int) -> int:
    """Return the newest time of the events at the beginning of a file."""
    newest_us = 0
    async with _events(login, file, server_id) as events:
        async for event in events:
            if event.file and (event.file != file or event.start > _HEAD_BYTES):  # the first event names no file
                break
            newest_us = max(newest_us, _time_us(event))
    return newest_us


@asynccontextmanager
async def _events(login: Login, file: str, server_id: int) -> AsyncIterator[AsyncIterator[AnyEvent]]:
    """Read the log from the beginning of a file to its end, in a session of its own."""
    async with connect(login) as session:
        stream = await session.dump(
            Position(file=file, offset=4), server_id=server_id, follow=False, wanted=lambda schema, table: False
        )
        async with aclosing(event async for events in stream for event in events) as found:
            yield found


def _has_microseconds(event: AnyEvent) -> bool:
    return isinstance(event, Gtid) and event.commit_time_us > 0


def _time_us(event: AnyEvent) -> int:
    return event.commit_time_us if isinstance(event, Gtid) and event.commit_time_us else event.time * _SECOND_US

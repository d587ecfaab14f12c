"""Several consistent snapshots of one binlog position, in sessions that read tables at the same time.

Sessions that open their views at once often have the same position. On a MariaDB that commits all the time, they open
them while commits are blocked for some milliseconds. This needs RELOAD, as the global read lock does: see `view`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass

from databus_binlog import Position
from databus_binlog.errors import MissingPrivilege, ServerRefused, TableChanged
from databus_binlog.row_batch import RowBatch
from databus_binlog.session import Session
from databus_changes.snapshot.connection import connect_snapshot
from databus_changes.snapshot.locks import block_commits
from databus_changes.snapshot.select import Select
from databus_changes.snapshot.view import needs_lock, start_behind, start_current_view, start_under_lock, with_gtids
from databus_core.errors import SchemaMismatch, SourceUnavailable
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.settings import Source

log = get_logger(__name__)


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
async def open_views(source: Source, host: str, count: int = 1, *, server: str = "") -> AsyncIterator[list[View]]:
    """Open views of one position that contain everything that is in the binlog now, each on a new connection to `host`.

    There is only one if others commit all the time, and the lock that several need is refused. `server` is the identity
    that the server must have. Raises SourceUnavailable, SourceNotReady or another FatalError.
    """
    async with AsyncExitStack() as connections:
        connecting = (connect_snapshot(source, host) for _ in range(count))
        sessions = [await connections.enter_async_context(each) for each in connecting]
        _require_one_server(host, sessions, server)
        if sessions[0].server.flavor == "mariadb":
            await _disable_binlog(sessions)
        position = await _start(source, host, sessions)
        if position is None:
            del sessions[1:]
            position = await start_current_view(sessions[0])
        yield [View(position, session) for session in sessions]


async def _start(source: Source, host: str, sessions: Sequence[Session]) -> Position | None:
    """Open views of one position; return None if only several of them need a lock, and the server refuses it."""
    if len(sessions) == 1:
        return await start_current_view(sessions[0])
    if await needs_lock(sessions[0]):
        return await start_under_lock(sessions)
    end = await sessions[0].current_position()
    started = await start_behind(sessions, end)
    if started is None:
        async with connect_snapshot(source, host) as session:
            try:
                await block_commits(session)
            except (MissingPrivilege, ServerRefused, SourceUnavailable) as error:  # before MariaDB 10.4: refused
                text = "the dump uses one connection, because others commit all the time, and a lock was refused"
                log.info(LogEvent.DUMP_NOT_PARALLEL, f"{text}: {error}")
                return None
            started = await start_behind(sessions, end)
    if started is None:
        raise SourceUnavailable(f"{len(sessions)} read views had different positions while commits were blocked")
    view, executes_xa = started
    return await (start_under_lock(sessions) if executes_xa else with_gtids(sessions[0], view))


def _require_one_server(host: str, sessions: Sequence[Session], server: str) -> None:
    found = {session.server.identity for session in sessions}
    if server and found != {server}:
        raise SourceUnavailable(f"{host} is another server now than when the dump began: the pipeline has to fail over")
    if len(found) > 1:
        raise SourceUnavailable(
            f"connections to {host} reach different servers, which have different rows: set dumps.connections: 1, or "
            "name the servers themselves in source.hosts"
        )


async def _disable_binlog(sessions: Sequence[Session]) -> None:
    """Disable the sessions' binary logging, if permitted.

    While it is enabled, MariaDB keeps the metadata locks of dumped tables until the view is closed.
    """
    try:
        for session in sessions:
            await session.query("SET SESSION sql_log_bin = 0")
    except MissingPrivilege:
        advice = "with BINLOG ADMIN granted to the user, it waits only until its table is read"
        log.info(LogEvent.DUMP_BLOCKS_DDL, f"DDL on a dumped table waits until the dump ends; {advice}")

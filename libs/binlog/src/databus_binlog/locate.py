"""A place in one server's log becomes a position that any server understands: with all that was executed before it."""

from __future__ import annotations

from databus_binlog.errors import InvalidPosition
from databus_binlog.events import Gtid
from databus_binlog.gtid import GtidSet
from databus_binlog.login import Login
from databus_binlog.position import Position, release
from databus_binlog.session import Session, connect

#: events that stand between transactions
_BETWEEN = {"Format_desc", "Previous_gtids", "Gtid_list", "Binlog_checkpoint", "Start_encryption", "Rotate", "Stop"}
_GTIDS = {"Gtid", "Anonymous_Gtid", "Gtid_tagged"}


async def locate(login: Login, file: str, offset: int, *, server_id: int) -> Position:
    """Return a place between two transactions with the GTID set executed before; without, where none are logged.

    MariaDB is asked; MySQL tells what came before the file, whose transactions up to the offset are then read.
    Raises InvalidPosition for a place inside a transaction, and where transactions have no GTID though the server's
    new ones do: a set would not tell them.
    """
    async with connect(login) as session:
        await _require_between(session, file, offset)
        if session.server.flavor == "mariadb":
            return Position(await session.gtid_at(file, offset), file, offset)
        if not session.server.gtid:
            return Position("", file, offset)
        executed = GtidSet.parse("mysql", await session.gtids_before(file))
        # A server built from a backup never had some in its log: no file tells them.
        [(purged,)] = await session.query("SELECT @@GLOBAL.gtid_purged")
        executed.merge(str(purged).replace("\n", ""))
        for gtid in await _gtids(session, file, 4, server_id, until=offset):
            executed.add(gtid)
    await next_gtid(login, file, offset, server_id=server_id)
    return Position(str(executed), file, offset)


async def next_gtid(login: Login, file: str, offset: int, *, server_id: int) -> str | None:
    """Return the GTID of the first transaction from a place on; None where there is none yet.

    Raises InvalidPosition for an anonymous one: a server that is asked by a GTID set may leave it out.
    """
    async with connect(login) as session:
        return next(iter(await _gtids(session, file, offset, server_id)), None)


async def _require_between(session: Session, file: str, offset: int) -> None:
    """Refuse an offset inside a transaction, where no event starts, or in a file that is not there."""
    if file not in (logs := await session.logs()):
        oldest, *_, newest = [*logs, *logs]
        raise InvalidPosition(f"the server has no file {file} (its log is {oldest} to {newest})")
    if offset > logs[file]:
        raise InvalidPosition(f"{file} ends at {logs[file]}, before {offset}")
    kind, text = await session.event_at(file, offset) or ("Rotate", "")
    # MySQL 5.6 logs no event for an anonymous one.
    old = session.server.flavor == "mysql" and release(session.server.version) < (5, 7)
    if kind not in _BETWEEN | _GTIDS and not (old and (kind, text) == ("Query", "BEGIN")):
        raise InvalidPosition(f"{file}:{offset} is inside a transaction (a {kind} event starts there)")


async def _gtids(session: Session, file: str, offset: int, server_id: int, until: int = 0) -> list[str]:
    """Read the GTIDs from a place up to an offset of the same file; or only the next one, wherever it is."""
    found: list[str] = []
    position = Position(file=file, offset=offset)
    stream = await session.dump(position, server_id=server_id, follow=False, wanted=lambda schema, table: False)
    async for events in stream:
        for event in events:
            if not isinstance(event, Gtid):
                continue
            if until and (event.file != file or event.start >= until):
                return found
            found.append(_require_gtid(event))
            if not until:
                return found
    return found


def _require_gtid(event: Gtid) -> str:
    if not event.gtid:
        raise InvalidPosition(f"the transaction at {event.file}:{event.start} has no GTID, others have")
    return event.gtid

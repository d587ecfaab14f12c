"""Adds the GTID set to a file and offset of one server's log, so that other servers understand the position, too."""

from __future__ import annotations

from databus_binlog.errors import InvalidPosition
from databus_binlog.events import Gtid
from databus_binlog.gtid import GtidSet
from databus_binlog.login import Login
from databus_binlog.position import Position, release
from databus_binlog.session import Session, connect

# Types of events, as SHOW BINLOG EVENTS names them.
_BETWEEN_TRANSACTIONS = {
    "Format_desc", "Previous_gtids", "Gtid_list", "Binlog_checkpoint", "Start_encryption", "Rotate", "Stop",
}  # fmt: skip
_TRANSACTION_START = {"Gtid", "Anonymous_Gtid", "Gtid_tagged"}


async def locate(login: Login, file: str, offset: int, *, server_id: int) -> Position:
    """Return the position of an offset between two transactions, with a GTID set if the server logs GTIDs.

    The set contains the transactions executed before the offset. MariaDB computes it. MySQL returns only the set
    executed before the file; this function adds gtid_purged and the file's transactions up to the offset.

    Raises InvalidPosition if the offset is inside a transaction, if no event starts at it, or if the file is gone. Also
    raises it if a MySQL server logs GTIDs now, but the next transaction, or one before the offset in the file, was
    logged without a GTID: no set can contain that transaction.
    """
    async with connect(login) as session:
        await _require_between(session, file, offset)
        if session.server.flavor == "mariadb":
            return Position(await session.gtid_at(file, offset), file, offset)
        if not session.server.gtid:
            return Position("", file, offset)
        executed = GtidSet.parse("mysql", await session.gtids_before(file))
        # Transactions restored from a backup are in gtid_purged, but were never in this server's log.
        [(purged,)] = await session.query("SELECT @@GLOBAL.gtid_purged")
        executed.merge(str(purged).replace("\n", ""))
        for gtid in await _gtids(session, file, 4, server_id, until=offset):
            executed.add(gtid)
    await next_gtid(login, file, offset, server_id=server_id)  # raises InvalidPosition for an anonymous transaction
    return Position(str(executed), file, offset)


async def next_gtid(login: Login, file: str, offset: int, *, server_id: int) -> str | None:
    """Return the GTID of the first transaction at or after an offset; None if there is no such transaction yet.

    Raises InvalidPosition if that transaction has no GTID: a server that sends its log from a GTID set may skip it.
    """
    async with connect(login) as session:
        return next(iter(await _gtids(session, file, offset, server_id)), None)


async def _require_between(session: Session, file: str, offset: int) -> None:
    """Raise InvalidPosition if the offset is inside a transaction, if no event starts at it, or if the file is gone."""
    if file not in (logs := await session.logs()):
        names = list(logs)
        raise InvalidPosition(f"the server has no file {file} (its log is {names[0]} to {names[-1]})")
    if offset > logs[file]:
        raise InvalidPosition(f"{file} ends at {logs[file]}, before {offset}")
    if (event := await session.event_at(file, offset)) is None:  # the offset is the end of the file
        return
    kind, text = event
    # MySQL 5.6 logs no GTID event for a transaction without a GTID.
    old = session.server.flavor == "mysql" and release(session.server.version) < (5, 7)
    if kind not in _BETWEEN_TRANSACTIONS | _TRANSACTION_START and not (old and (kind, text) == ("Query", "BEGIN")):
        raise InvalidPosition(f"{file}:{offset} is inside a transaction (a {kind} event starts there)")


async def _gtids(session: Session, file: str, offset: int, server_id: int, until: int = 0) -> list[str]:
    """Read the GTIDs from an offset up to `until` in the same file; if `until` is 0, only the next one, in any file."""
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
        where = f"{event.file}:{event.start}"
        raise InvalidPosition(f"the transaction at {where} has no GTID, so no GTID set can contain it")
    return event.gtid

"""Verify that a host has everything the progress needs. A refusal has a reason, and its text names what is missing.

A GTID set means the same on every server; a file and an offset are valid only on the server that wrote them.
"""

from typing import NamedTuple, cast

from databus_binlog import Flavor, GtidSet, InvalidPosition, Login, MariaDbGtidPosition, Position, ServerRefused
from databus_binlog.locate import locate, next_gtid
from databus_binlog.session import Session
from databus_core.errors import Refusal, SourceRefused
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger, position_fields
from databus_core.progress import Progress
from databus_core.settings import Settings

log = get_logger(__name__)

#: characters of a GTID set that a message shows
_SHOWN = 300


class Verified(NamedTuple):
    """The position to read a host from. It has a file only if the host wrote that file."""

    position: Position
    #: whether this position and later ones carry the set of all GTIDs executed before them
    gtids: bool
    #: whether the host's log has exactly the position's GTID set before the position's file and offset
    in_order: bool


async def verify(
    settings: Settings, host: str, session: Session, progress: Progress, *, server_id: int | None = None
) -> Verified:
    """Verify that the host of a session has everything the progress needs, and return the position to read it from.

    `server_id` is our id as a replica, by default that of the reader. Raises SourceRefused.
    """
    try:
        return await _verify(session, settings.source.login(host), progress, server_id=server_id or settings.server_id)
    except SourceRefused as error:
        raise SourceRefused(error.reason, f"database {host}: {error.reason}: {error}") from error


async def _verify(session: Session, login: Login, progress: Progress, *, server_id: int) -> Verified:
    """Do the work of `verify`. `login` is for more connections to the same host; `server_id` is our id as a replica."""
    position, server = progress.position or Position(), session.server
    own_file = bool(position.file) and progress.server in ("", server.identity)
    if own_file and not await _has_position(session, position):
        own_file, position = False, Position(position.gtid_set)
    if not (position.gtid_set and server.gtid):
        if not own_file:
            raise _without_gtids(session, progress)
        if position.gtid_set and not progress.in_order:
            log.warning(
                LogEvent.READING_BY_FILE,
                "GTIDs are off now, so reading continues by file and offset: transactions that this server's log "
                "has in another order than they were published in may be published twice",
                **position_fields(position),
            )
        return await _with_gtid_set(session, login, position, server_id)
    await _require_gtids(session, position, same_server=progress.server == server.identity)
    if own_file and server.flavor == "mysql":
        await _require_next_gtid(login, position, server_id)
    if not own_file:
        return Verified(Position(position.gtid_set), gtids=True, in_order=False)
    return Verified(position, gtids=True, in_order=progress.in_order)


async def _has_position(session: Session, position: Position) -> bool:
    """Return whether this server's log has the position; False if its file was purged or has another base name.

    Raises SourceRefused if the log was reset. A reset goes unnoticed here if the new log has a file of the same name,
    an event starts at that offset in it, and all GTIDs before the file were read or the position has no GTID set.
    """
    logs = await session.logs()
    base, _, number = position.file.rpartition(".")
    if position.file not in logs:
        newest_base, _, newest = list(logs)[-1].rpartition(".")
        if base == newest_base and int(number) > int(newest):
            raise SourceRefused(
                Refusal.RESET, f"its log ends with {base}.{newest}, but {position.file} was read: {_RESET}"
            )
        return False
    if position.offset > logs[position.file]:
        size = logs[position.file]
        raise SourceRefused(
            Refusal.RESET, f"{position.file} ends at {size}, but offset {position.offset} was read: {_RESET}"
        )
    try:
        await session.event_at(position.file, position.offset)
    except InvalidPosition as error:
        raise SourceRefused(Refusal.RESET, f"no event starts at {position.file}:{position.offset}: {_RESET}") from error
    flavor = session.server.flavor
    before = _parsed(flavor, await session.gtids_before(position.file))
    if position.gtid_set and (unread := before.minus(_parsed(flavor, position.gtid_set))):
        raise SourceRefused(
            Refusal.RESET, f"{position.file} starts after {_shown(unread)}, which was not read: {_RESET}"
        )
    return True


_RESET = "its log was reset or has lost its end"


def _without_gtids(session: Session, progress: Progress) -> SourceRefused:
    """Build the refusal of a position that cannot be found in this server's log without GTIDs."""
    position = progress.position or Position()
    shown = f"{position.file}:{position.offset}" if position.file else position.gtid_set[:_SHOWN]
    if progress.server == session.server.identity and position.file:
        return SourceRefused(Refusal.PURGED, f"its log no longer has {shown}")
    if not session.server.gtid:
        why = "this server logs no GTIDs (gtid_mode is not ON)"
    else:
        why = f"it is a position of server {progress.server or '(unknown)'}, and without GTIDs it is valid only there"
    return SourceRefused(Refusal.NO_GTIDS, f"position {shown} cannot be found in its log: {why}")


async def _require_gtids(session: Session, position: Position, *, same_server: bool) -> None:
    """Refuse a server that lacks published transactions, or that has purged transactions that were not read yet."""
    compare = _compare_mysql if session.server.flavor == "mysql" else _compare_mariadb
    lacking, more, gone = await compare(session, position)
    if lacking and same_server:
        raise SourceRefused(Refusal.RESET, f"it no longer has {_shown(lacking)}, which was published: {_RESET}")
    if lacking and more:
        raise SourceRefused(
            Refusal.OTHER_HISTORY,
            f"it lacks {_shown(lacking)}, which was published, and has {_shown(more)}, which was not",
        )
    if lacking:
        raise SourceRefused(Refusal.BEHIND, f"it lacks {_shown(lacking)}, which was published")
    if gone:
        raise SourceRefused(Refusal.PURGED, f"it no longer has {_shown(gone)}, which was not read yet")


class _Comparison(NamedTuple):
    """A server's transactions compared with the published ones."""

    #: published transactions that the server lacks
    lacking: GtidSet
    #: unpublished transactions that the server cannot have if it is only a replica that is behind
    more: GtidSet
    #: unpublished transactions that the server has purged
    gone: GtidSet


async def _compare_mysql(session: Session, position: Position) -> _Comparison:
    [(executed, purged)] = await session.query("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
    ours, theirs = _parsed("mysql", position.gtid_set), _parsed("mysql", executed)
    lacking, more = ours.minus(theirs), theirs.minus(ours)
    # A replica with several workers may have later transactions of a source before earlier ones, which will follow.
    instead = more.minus(more.of_sources_in(lacking))
    return _Comparison(lacking, instead, _parsed("mysql", purged).minus(ours))


async def _compare_mariadb(session: Session, position: Position) -> _Comparison:
    [(state, last)] = await session.query("SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_binlog_pos")
    ours = cast(MariaDbGtidPosition, _parsed("mariadb", position.gtid_set))
    lacking = ours.missing_from(_text(state))
    instead = _parsed("mariadb", last).minus(ours).of_sources_in(lacking)
    earliest = await session.earliest_position()
    return _Comparison(lacking, instead, _parsed("mariadb", earliest.gtid_set).minus(ours))


async def _with_gtid_set(session: Session, login: Login, position: Position, server_id: int) -> Verified:
    """Return a position in the server's own files, with its GTID set if it can be determined, else without any."""
    by_file = Verified(Position("", position.file, position.offset), gtids=False, in_order=True)
    if not session.server.gtid:
        return by_file
    try:
        located = await locate(login, position.file, position.offset, server_id=server_id)
        return Verified(located, gtids=True, in_order=True)
    except (InvalidPosition, ServerRefused) as error:
        log.warning(
            LogEvent.READING_BY_FILE,
            f"reading continues by file, so no other host can take over: the position has no GTID set ({error})",
            **position_fields(position),
        )
        return by_file


async def _require_next_gtid(login: Login, position: Position, server_id: int) -> None:
    """Refuse a log whose next transaction has no GTID: the server may skip it if the binlog is requested by GTID."""
    try:
        await next_gtid(login, position.file, position.offset, server_id=server_id)
    except (InvalidPosition, ServerRefused) as error:
        raise SourceRefused(
            Refusal.NO_GTIDS,
            f"the next transaction has no GTID: set gtid_mode=ON_PERMISSIVE until it is read ({error})",
        ) from error


def _parsed(flavor: Flavor, text: object) -> GtidSet:
    return GtidSet.parse(flavor, _text(text))


def _text(value: object) -> str:
    return (value.decode() if isinstance(value, bytes) else str(value)).replace("\n", "")


def _shown(gtids: GtidSet) -> str:
    text = str(gtids)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

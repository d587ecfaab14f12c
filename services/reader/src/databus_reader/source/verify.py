"""Does a host have what the progress needs? Each refusal has its reason, and says what the host lacks.

A GTID set means the same on every server; a file and an offset mean something only on the one that wrote them.
"""

from typing import NamedTuple, cast

from databus.errors import Refusal, SourceRefused
from databus.log_events import LogEvent
from databus.logs import get_logger, position_fields
from databus.progress import Progress
from databus_binlog import Flavor, GtidSet, InvalidPosition, Login, MariaDbGtidPosition, Position, ServerRefused
from databus_binlog.locate import locate, next_gtid
from databus_binlog.session import Session

log = get_logger(__name__)

#: a set is shown up to this many characters
_SHOWN = 300


class Verified(NamedTuple):
    """A position as it is to be read at a host: without a file that is not its own."""

    position: Position
    #: its GTID set is all that was executed before, and so will be that of later positions
    gtids: bool
    #: its log has all of the GTID set before the place, and nothing else
    in_order: bool


async def verify(session: Session, login: Login, progress: Progress, *, server_id: int) -> Verified:
    """Look whether the host has what the progress needs.

    Raises SourceRefused. `login` is for more connections to the same host, as a replica of this id.
    """
    position, server = progress.position or Position(), session.server
    here = bool(position.file) and progress.server in ("", server.identity)
    if here and not await _has_file(session, position):
        here, position = False, Position(position.gtid_set)
    if not (position.gtid_set and server.gtid):
        if not here:
            raise _without_gtids(session, progress)
        if position.gtid_set and not progress.in_order:
            log.warning(
                LogEvent.READING_BY_FILE,
                "GTIDs are off now, so reading continues by file: transactions that stand in another order in this "
                "server's log may come twice",
                **position_fields(position),
            )
        return await _complete(session, login, position, server_id)
    await _require_gtids(session, position, same_server=progress.server == server.identity)
    if here and server.flavor == "mysql":
        await _require_next_gtid(login, position, server_id)
    if not here:
        return Verified(Position(position.gtid_set), gtids=True, in_order=False)
    return Verified(position, gtids=True, in_order=progress.in_order)


async def _has_file(session: Session, position: Position) -> bool:
    """Look for the position in this server's own log. False: its file is older than the log, or named otherwise.

    A log that began anew under the same names, and has grown beyond the position since, is not noticed if an event
    happens to start there.
    """
    logs = await session.logs()
    base, _, number = position.file.rpartition(".")
    if position.file not in logs:
        newest_base, _, newest = list(logs)[-1].rpartition(".")
        if base == newest_base and int(number) > int(newest):
            raise SourceRefused(
                Refusal.RESET, f"its log ends with {base}.{newest}, and {position.file} was read: {_ANEW}"
            )
        return False
    if position.offset > logs[position.file]:
        size = logs[position.file]
        raise SourceRefused(Refusal.RESET, f"{position.file} ends at {size}, and {position.offset} was read: {_ANEW}")
    try:
        await session.event_at(position.file, position.offset)
    except InvalidPosition as error:
        raise SourceRefused(Refusal.RESET, f"no event starts at {position.file}:{position.offset}: {_ANEW}") from error
    flavor = session.server.flavor
    before = _parsed(flavor, await session.gtids_before(position.file))
    if position.gtid_set and (unread := before.minus(_parsed(flavor, position.gtid_set))):
        raise SourceRefused(
            Refusal.RESET, f"{position.file} begins after {_shown(unread)}, which was not read: {_ANEW}"
        )
    return True


_ANEW = "its log was reset or has lost its end"


def _without_gtids(session: Session, progress: Progress) -> SourceRefused:
    """Say why a position without GTIDs is of no use here."""
    position = progress.position or Position()
    place = f"{position.file}:{position.offset}" if position.file else position.gtid_set[:_SHOWN]
    if progress.server == session.server.identity and position.file:
        return SourceRefused(Refusal.PURGED, f"its log no longer has {place}, and without GTIDs nothing else tells it")
    if not session.server.gtid:
        why = "this server logs no GTIDs (gtid_mode is not ON)"
    else:
        why = f"it is a place of server {progress.server or '(unknown)'}, and without GTIDs it means nothing elsewhere"
    return SourceRefused(Refusal.NO_GTIDS, f"it cannot be told where {place} is in its log: {why}")


async def _require_gtids(session: Session, position: Position, *, same_server: bool) -> None:
    """Refuse a server that lacks what was published, or no longer has what comes next."""
    read = _mysql if session.server.flavor == "mysql" else _mariadb
    lacking, more, gone = await read(session, position)
    if lacking and same_server:
        raise SourceRefused(Refusal.RESET, f"it no longer has {_shown(lacking)}, which was published: {_ANEW}")
    if lacking and more:
        raise SourceRefused(
            Refusal.OTHER_HISTORY,
            f"it lacks {_shown(lacking)}, which was published, and has {_shown(more)}, which was not",
        )
    if lacking:
        raise SourceRefused(Refusal.BEHIND, f"it lacks {_shown(lacking)}, which was published")
    if gone:
        raise SourceRefused(
            Refusal.PURGED, f"it no longer has {_shown(gone)}, which was not read yet: begin again from a new dump"
        )


#: what a server lacks, what it has in its place, and what is to be read and gone
_Comparison = tuple[GtidSet, GtidSet, GtidSet]


async def _mysql(session: Session, position: Position) -> _Comparison:
    [(executed, purged)] = await session.query("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
    ours, theirs = _parsed("mysql", position.gtid_set), _parsed("mysql", executed)
    lacking, more = ours.minus(theirs), theirs.minus(ours)
    # More of the very sources it lacks some of: a replica with several workers that has gaps, and will fill them.
    in_its_place = more.minus(more.of_sources_in(lacking))
    return lacking, in_its_place, _parsed("mysql", purged).minus(ours)


async def _mariadb(session: Session, position: Position) -> _Comparison:
    [(state, last)] = await session.query("SELECT @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_binlog_pos")
    ours = cast(MariaDbGtidPosition, _parsed("mariadb", position.gtid_set))
    lacking = ours.missing_from(_text(state))
    in_its_place = _parsed("mariadb", last).minus(ours).of_sources_in(lacking)
    earliest = await session.earliest_position()
    return lacking, in_its_place, _parsed("mariadb", earliest.gtid_set).minus(ours)


async def _complete(session: Session, login: Login, position: Position, server_id: int) -> Verified:
    """Add the GTID set that a server with GTIDs has at a place of its own."""
    place = Verified(Position("", position.file, position.offset), gtids=False, in_order=True)
    if not session.server.gtid:
        return place
    try:
        located = await locate(login, position.file, position.offset, server_id=server_id)
        return Verified(located, gtids=True, in_order=True)
    except (InvalidPosition, ServerRefused) as error:
        log.warning(
            LogEvent.READING_BY_FILE,
            f"reading continues by file, so no other host can take over: the position has no GTID set ({error})",
            **position_fields(position),
        )
        return place


async def _require_next_gtid(login: Login, position: Position, server_id: int) -> None:
    """Refuse a log in which a transaction without GTID comes next: asked by GTIDs the server may leave it out."""
    try:
        await next_gtid(login, position.file, position.offset, server_id=server_id)
    except (InvalidPosition, ServerRefused) as error:
        raise SourceRefused(
            Refusal.NO_GTIDS,
            f"a transaction without GTID comes next: set gtid_mode=ON_PERMISSIVE until it is read ({error})",
        ) from error


def _parsed(flavor: Flavor, text: object) -> GtidSet:
    return GtidSet.parse(flavor, _text(text))


def _text(value: object) -> str:
    return (value.decode() if isinstance(value, bytes) else str(value)).replace("\n", "")


def _shown(gtids: GtidSet) -> str:
    text = str(gtids)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

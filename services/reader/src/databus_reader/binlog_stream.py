"""Request the binlog as the reader needs it: captured rows, with the definitions of their tables."""

from databus_binlog import Position
from databus_binlog.session import Session, Stream
from databus_changes.tracker import TableTracker
from databus_core.settings import Settings

_HEARTBEAT_SECONDS = 1.0


async def open_binlog(
    settings: Settings, session: Session, start: Position, tracker: TableTracker, *, server_id: int, follow: bool
) -> Stream:
    """Stream the binlog from a position; without `follow`, up to its current end."""
    return await session.dump(
        start,
        server_id=server_id,
        heartbeat=_HEARTBEAT_SECONDS,
        wanted=settings.source.captures,
        describe=tracker.describe,
        statements=settings.publisher.needs_statements,
        row_limit=settings.reader.row_limit,
        engine=settings.reader.engine,
        follow=follow,
    )

"""Find one transaction in the binlog of the host that a pipeline reads, and what it has of captured tables."""

from collections import Counter
from collections.abc import AsyncIterable
from dataclasses import dataclass, field

from databus_binlog import (
    AnyEvent,
    Events,
    Gtid,
    GtidSet,
    InvalidPosition,
    OversizedRows,
    Position,
    Query,
    Rows,
    XaPrepare,
)
from databus_binlog.session import Session
from databus_binlog.transaction_starts import TransactionStarts
from databus_core.errors import InvalidSettings
from databus_core.events import full_name
from databus_core.progress import Progress
from databus_core.settings import Settings, StartAfterGtids, StartAt
from databus_core.source_log import log_offset
from databus_core.source_verify import verify


@dataclass
class Transaction:
    """A transaction in the binlog."""

    #: empty if it has none
    gtid: str
    #: position of its first event
    file: str
    offset: int
    #: offset at which its last event ends
    end: int = 0
    #: captured table → number of its rows
    rows: Counter[str] = field(default_factory=Counter)
    #: whether it ends in XA PREPARE: another transaction decides on its rows
    is_prepared: bool = False
    #: whether it commits rows that an earlier transaction has prepared
    is_xa_commit: bool = False

    def is_at(self, wanted: StartAt | StartAfterGtids) -> bool:
        """Return whether this is the transaction with the wanted GTID, or around the wanted offset."""
        if isinstance(wanted, StartAt):
            return self.file == wanted.file and self.offset <= wanted.offset < self.end
        return self.gtid.lower() == wanted.gtid_set.strip().lower()

    def add(self, event: AnyEvent, events: Events) -> None:
        """Take the transaction's next event."""
        match event:
            case Rows() | OversizedRows():
                table = events.tables[event.table]
                images = event.count if isinstance(event, Rows) else 1
                is_update = isinstance(event, Rows) and event.action == "update"
                self.rows[full_name(table.schema, table.name)] += images // 2 if is_update else images
            case XaPrepare(one_phase=False):
                self.is_prepared = True
            case Query():
                self.is_xa_commit |= event.query[:10].upper() == b"XA COMMIT "
        if event.file == self.file:
            self.end = event.end


async def find(
    settings: Settings, host: str, session: Session, progress: Progress, wanted: StartAt | StartAfterGtids
) -> Transaction:
    """Read the host's binlog from the progress on until the wanted transaction.

    Raises InvalidSettings if it was published already, or is not in the binlog, and SourceRefused if the host no longer
    has the binlog from the progress on.
    """
    name = str(wanted).removeprefix("gtid:")
    if await _is_published(session, progress.position or Position(), wanted):
        raise InvalidSettings(f"--transaction: {name} was published already")
    server_id = settings.command_server_id  # with its own ids, the server would disconnect the reader
    start = (await verify(settings, host, session, progress, server_id=server_id)).position
    stream = await session.dump(
        start, server_id=server_id, wanted=settings.source.captures, follow=False, row_limit=settings.reader.row_limit
    )
    if found := await search(stream, wanted):
        return found
    raise InvalidSettings(
        f"--transaction: the binlog of {host} has no transaction {name} after the pipeline's position"
    )


async def search(stream: AsyncIterable[Events], wanted: StartAt | StartAfterGtids) -> Transaction | None:
    """Return the first transaction of a binlog that is the wanted one; None if there is none."""
    latest, starts = Transaction("", "", 0), TransactionStarts()
    async for events in stream:
        for event in events:
            if starts.is_start(event):
                if latest.is_at(wanted):
                    return latest
                latest = Transaction(event.gtid if isinstance(event, Gtid) else "", event.file, event.start)
            latest.add(event, events)
    return latest if latest.is_at(wanted) else None


async def _is_published(session: Session, published: Position, wanted: StartAt | StartAfterGtids) -> bool:
    """Return whether a transaction is before a position of the session's server."""
    if isinstance(wanted, StartAt):
        logs = await session.logs()
        begin, offset = log_offset(logs, published), log_offset(logs, Position("", wanted.file, wanted.offset))
        return begin is not None and offset is not None and offset < begin
    try:
        wanted_set = GtidSet.parse(session.server.flavor, wanted.gtid_set)
    except InvalidPosition as error:
        raise InvalidSettings(f"--transaction: {error}") from error
    return GtidSet.parse(session.server.flavor, published.gtid_set).covers(wanted_set)

"""Read XA transactions again that were prepared before the reader's start, when they are committed (ADR 15)."""

from collections.abc import AsyncIterator, Mapping

from databus_binlog import AnyEvent, Gtid, Position, Query, Rotate, TableMap, XaPrepare
from databus_binlog.session import Session
from databus_changes.held_rows import HeldTransaction
from databus_changes.prepared import PreparedTransactions
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_core.errors import Refusal, SourceRefused
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.progress import PreparedTransaction, Progress
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.source_connection import connect_source
from databus_core.source_verify import verify
from databus_reader.binlog_stream import open_binlog
from databus_reader.prepared_scan import PreparedScan
from databus_reader.source.hosts import SourceConnection

log = get_logger(__name__)

#: offset of the first event in a binlog file
_FIRST_OFFSET = 4


class EarlierTransactions:
    """Reads them on a second connection to the host that is read. `tracker` has the tables at the present position."""

    def __init__(self, settings: Settings, connection: SourceConnection, tracker: TableTracker, health: Health) -> None:
        self._settings = settings
        self._host = connection.host
        self._server = connection.session.server
        self._tracker = tracker
        self._health = health

    async def search(self, xid: str, commit: Query) -> dict[str, PreparedTransaction | None]:
        """Search the host's binlog backwards, file by file (see `databus_changes.prepared.PreparedLog`)."""
        where = f"{commit.file}:{commit.start}"
        log.info(LogEvent.PREPARED_SEARCHED, f"searching the binlog for the XA PREPARE of {xid}", position=where)
        async with connect_source(self._settings.source, self._host) as session:
            files = list(await session.logs())
        found: dict[str, PreparedTransaction | None] = {}
        later: set[str] = set()
        for file in reversed(files[: files.index(commit.file) + 1] if commit.file in files else []):
            is_last = file == commit.file  # each start of a server begins a file, so there was no crash within it
            crashed = xid if self._server.flavor == "mariadb" and not is_last else ""
            scan = PreparedScan(self._server.identity, crashed)
            await self._scan(scan, file, commit.start if is_last else None)
            found |= {each: transaction for each, transaction in scan.open.items() if each not in later}
            later |= scan.seen
            if scan.committed:
                text = (
                    f"XA transaction {xid} is committed again, after a crash of the server during its first XA COMMIT"
                )
                advice = "its rows were published then; if one of its tables was loaded in between, load it again"
                log.warning(LogEvent.COMMITTED_AGAIN, f"{text}; {advice}", position=where)
                found[xid] = None
            if xid in later:
                break
        if xid not in found:
            raise SourceRefused(
                Refusal.PURGED,
                f"database {self._host}: XA COMMIT {xid} at {where}: the binlog no longer has its XA PREPARE, and so "
                "the rows of the transaction are not known",
            )
        return found

    async def _scan(self, scan: PreparedScan, file: str, until: int | None) -> None:
        """Read a file, up to an offset."""
        async with connect_source(self._settings.source, self._host) as session:
            async for event, _ in self._events(session, Position("", file, _FIRST_OFFSET), self._tracker.copy()):
                if isinstance(event, Rotate) and event.artificial:  # the first event, which is in no file
                    continue
                if event.file != file or (until is not None and event.start >= until):
                    break
                scan.add(event)

    async def read(self, transaction: PreparedTransaction) -> HeldTransaction:
        """Read the rows of a transaction again."""
        start = f"{transaction.position.file}:{transaction.position.offset}"
        log.info(LogEvent.PREPARED_READ, f"reading XA transaction {transaction.xid} again", position=start)
        try:
            async with connect_source(self._settings.source, self._host) as session:
                return await self._read(session, transaction)
        except SourceRefused as error:
            if not error.is_lasting:
                raise
            raise SourceRefused(
                error.reason,
                f"XA transaction {transaction.xid}, prepared at {start}, is committed, but its rows cannot be read: "
                f"{error}; name another host that has them in source.hosts",
            ) from error

    async def _read(self, session: Session, transaction: PreparedTransaction) -> HeldTransaction:
        connection = await self._connection(session, transaction)
        collected, tracker = PreparedTransactions(), self._tracker.copy()
        translator = Translator(
            self._settings.source,
            self._server.flavor,
            tracker,
            Progress(),
            prepared=collected,
            partial=self._settings.publisher.publish_partial,
        )
        first: Gtid | None = None
        async for event, tables in self._events(session, connection.binlog_start, tracker):
            if isinstance(event, Gtid) and _begins(event, transaction):
                first = event
            if first is None:
                continue
            await translator.translate([event], tables)
            if isinstance(event, XaPrepare):
                return next(collected.held(), HeldTransaction(first))
        raise SourceRefused(Refusal.PURGED, f"database {self._host}: its binlog ends before the XA PREPARE")

    async def _connection(self, session: Session, transaction: PreparedTransaction) -> SourceConnection:
        """Return from where to read a transaction. Raises SourceRefused."""
        position, settings = transaction.position, self._settings
        if transaction.server == self._server.identity and not (position.gtid_set and self._server.gtid):
            return SourceConnection(self._host, session, Position("", position.file, position.offset), False, True)
        progress = Progress(position, server=transaction.server, in_order=transaction.in_order)
        verified = await verify(settings, self._host, session, progress, server_id=settings.second_server_id)
        return SourceConnection(self._host, session, *verified)

    async def _events(
        self, session: Session, start: Position, tracker: TableTracker
    ) -> AsyncIterator[tuple[AnyEvent, Mapping[str, TableMap]]]:
        """Yield the events from a position up to the end of the binlog, each with the tables it may refer to."""
        settings = self._settings
        server_id = settings.second_server_id
        async for events in await open_binlog(settings, session, start, tracker, server_id=server_id, follow=False):
            self._health.beat()
            for event in events:
                yield event, events.tables


def _begins(event: Gtid, transaction: PreparedTransaction) -> bool:
    """Return whether an event begins the transaction: on another host it may follow later ones."""
    if transaction.gtid:
        return event.gtid == transaction.gtid
    return (event.file, event.start) == (transaction.position.file, transaction.position.offset)

"""Binlog events become change events: transactions with captured changes, and positions where nothing was captured."""

from collections.abc import Iterable, Mapping

from databus.errors import START_AFRESH, FatalError
from databus.events import (
    Action,
    Begin,
    Commit,
    Event,
    Heartbeat,
    OversizedRow,
    QueryEvent,
    RowsEvent,
    Table,
    TableDefinition,
)
from databus.progress import Progress
from databus.settings import Source
from databus_binlog import Event as BinlogEvent
from databus_binlog import GtidSet, Server, TableMap
from databus_binlog import events as binlog
from databus_changes.ddl.statement import Name, TableChange
from databus_changes.schemas import Schemas
from databus_changes.statements import Statements, text_of

_ACTIONS = {action.value: action for action in Action}


class Translator:
    """Turns the binlog of one generation into change events.

    What arrives, in order (MySQL): `GTID, QUERY "BEGIN", {[ROWS_QUERY] TABLE_MAP+ ROWS+}*, XID | QUERY "COMMIT"`, or
    `GTID, QUERY ddl`; XA has `QUERY "XA START"` for BEGIN and `XA_PREPARE` for the end. MariaDB sends no BEGIN; a GTID
    flagged standalone is followed by exactly one QUERY. Only the end of such a group is a position to resume from.
    """

    def __init__(
        self, source: Source, server: Server, schemas: Schemas, progress: Progress, *, gtids: bool = True
    ) -> None:
        self._schemas = schemas
        self._statements = Statements(source, schemas)
        self._flavor = server.flavor
        self._mariadb = server.flavor == "mariadb"
        #: positions tell all GTIDs executed before; else none, for some transactions have none
        self._gtids = gtids
        #: executed since an event told it last, without captured changes
        self._passed = GtidSet.parse(server.flavor, "")
        self._passed_some = False
        self._announced: dict[Name, str] = {}
        self._transaction = progress.transaction
        self._gtid: binlog.Gtid | None = None
        self._in_group = False
        self._begun = False
        #: of the BEGIN, which MariaDB does not send
        self._thread = 0
        self._row = 0
        self._query: bytes | None = None
        #: file and offset where the last group without captured changes ended; None where a Commit tells or will tell
        self._moved: tuple[str, int] | None = None
        #: row images and transactions translated so far
        self.rows = 0
        self.transactions = 0
        #: commit time of the last event, µs since the epoch
        self.time_us = progress.time_us

    async def translate(self, events: Iterable[BinlogEvent], tables: Mapping[str, TableMap]) -> list[Event]:
        """Translate a chunk and the tables of its rows. Raises FatalError where going on would lose or invent a row."""
        out: list[Event] = []
        for event in events:
            match event:
                case binlog.Rows():
                    table = self._schemas.known(event.table) or await self._schemas.learn(tables[event.table])
                    self._rows(event, table, out)
                case binlog.OversizedRows():
                    table = self._schemas.known(event.table) or await self._schemas.learn(tables[event.table])
                    self._oversized(event, table, out)
                case binlog.Gtid():
                    if self._begun:
                        raise FatalError(
                            f"a transaction before {event.file}:{event.start} has no end, "
                            f"as after a crash of the server: {START_AFRESH}"
                        )
                    self._gtid = event
                    self._in_group = self._mariadb and not event.standalone
                case binlog.Xid():
                    self._end(event, event.xid, out)
                case binlog.Query():
                    await self._statement(event, out)
                case binlog.RowsQuery():
                    self._query = event.query
                case binlog.XaPrepare():
                    if not event.one_phase:
                        self._refuse("XA PREPARE", event)
                    self._end(event, None, out)
                case binlog.Rotate() if not event.artificial:
                    self._moved = event.next_file, event.position
        return out

    def take_heartbeat(self) -> Heartbeat | None:
        """Give, once, how far the binlog was read without captured changes; None if a Commit tells it."""
        if self._moved is None:
            return None
        (file, end), self._moved = self._moved, None
        return Heartbeat(self._executed(""), file, end, self.time_us)

    def _executed(self, gtid: str) -> str:
        """Tell, once, what was executed since the last time; `gtid` last."""
        if not self._passed_some:
            return gtid
        passed, self._passed = self._passed, GtidSet.parse(self._flavor, "")
        self._passed_some = False
        passed.add(gtid)
        return str(passed)

    def _rows(self, event: binlog.Rows, table: Table, out: list[Event]) -> None:
        self._require_group(event)
        if not event.complete:
            raise FatalError(
                f"rows of {table.schema}.{table.name} at {event.file}:{event.start} lack columns: "
                f"set binlog_row_image=FULL on the server (also for sessions that changed it); {START_AFRESH}"
            )
        self._begin(event, out)
        self._announce(table, out)
        action = _ACTIONS[event.action]
        out.append(RowsEvent(table.fingerprint, action, self._row, event.start, event.end, event.rows, self._query))
        self._query = None
        self.rows += event.count
        self._row += event.count // 2 if action is Action.UPDATE else event.count

    def _oversized(self, event: binlog.OversizedRows, table: Table, out: list[Event]) -> None:
        """Tell of a row that was too large to be read: so large an event has but one."""
        self._require_group(event)
        self._begin(event, out)
        self._announce(table, out)
        action = _ACTIONS[event.action]
        out.append(OversizedRow(table.fingerprint, action, self._row, event.start, event.end, event.size))
        self._query = None
        self._row += 1

    def _require_group(self, event: binlog.Rows | binlog.OversizedRows) -> None:
        if not self._in_group:
            raise FatalError(f"rows outside a transaction at {event.file}:{event.start}: {START_AFRESH}")

    async def _statement(self, event: binlog.Query, out: list[Event]) -> None:
        words = event.query[:32].upper().split()
        if words == [b"BEGIN"] or words[:2] in ([b"XA", b"START"], [b"XA", b"BEGIN"]):
            self._in_group = True
            self._thread = event.thread_id
            return
        if words[:1] == [b"ROLLBACK"]:
            self._refuse("ROLLBACK", event)
        await self._definition(event, out)
        if not self._in_group or words in ([b"COMMIT"], [b"ROLLBACK"]):
            self._end(event, event.xid, out)

    def _refuse(self, what: str, event: BinlogEvent) -> None:
        """Stop where captured rows are open whose fate this event leaves unknown."""
        if self._begun:
            raise FatalError(
                f"{what} after captured rows at {event.file}:{event.start}, unknown which of them count: {START_AFRESH}"
            )

    async def _definition(self, event: binlog.Query, out: list[Event]) -> None:
        """Publish DDL on captured tables; stop at a statement that changed their rows without logging them."""
        if self._gtid and self._gtid.alter in {"start", "rollback"}:  # it counts when its COMMIT ALTER comes, if ever
            return
        effects = self._statements.read(event)
        if effects.is_dml:
            return
        before = {change.table: self._schemas.existing(*change.table) for change in effects.changes}
        definitions = await self._schemas.follow(text_of(event), event.schema, effects.tables, whole=effects.whole)
        if definitions or effects.changes:
            self._begin(event, out)
        for change in effects.changes:
            self._ddl(change, before[change.table], event, out)
        for definition in definitions:
            if isinstance(definition, Table):
                self._announce(definition, out)
            else:
                out.append(definition)

    def _ddl(self, change: TableChange, before: Table | None, event: binlog.Query, out: list[Event]) -> None:
        if before is not None:
            self._announce(before, out)
        table = self._schemas.table(change.schema, change.name)
        self._announce(table, out)
        query = change.query.encode("utf-8", "surrogateescape")
        old = before.fingerprint if before is not None else ""
        out.append(QueryEvent(table.fingerprint, change.action, query, event.start, event.end, old))

    def _begin(self, event: binlog.Rows | binlog.OversizedRows | binlog.Query, out: list[Event]) -> None:
        if self._begun:
            return
        self._begun = True
        self._moved = None
        self._row = 0
        self._transaction += 1
        gtid, committed = (self._gtid.gtid, self._gtid.commit_time_us) if self._gtid else ("", 0)
        self.time_us = committed or event.time * 1_000_000
        thread = event.thread_id if isinstance(event, binlog.Query) else self._thread
        out.append(Begin(self._transaction, gtid, event.file, event.server_id, thread, self.time_us))

    def _announce(self, table: Table, out: list[Event]) -> None:
        """Send a table's definition before the first event that refers to it, and whenever it is another."""
        name = table.schema, table.name
        if self._announced.get(name) != table.fingerprint:
            self._announced[name] = table.fingerprint
            out.append(TableDefinition(table))

    def _end(self, event: BinlogEvent, xid: int | None, out: list[Event]) -> None:
        """End the group: its end is where one may resume."""
        gtid = self._gtid.gtid if self._gtid and self._gtids else ""
        if self._begun:
            out.append(Commit(self._executed(gtid), event.file, event.end, xid))
            self.transactions += 1
        else:
            self._passed.add(gtid)
            self._passed_some = self._passed_some or bool(gtid)
            self._moved = event.file, event.end
        self._gtid = self._query = None
        self._in_group = self._begun = False
        self._thread = 0

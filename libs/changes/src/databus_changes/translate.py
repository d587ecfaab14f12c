"""Turns binlog events into change events: transactions with captured changes, and for all others only a position.

Binlog events come in the following order. Each GTID event begins a group: a transaction, or a single statement.

    MySQL    GTID  QUERY "BEGIN"  ([ROWS_QUERY] TABLE_MAP+ ROWS+)*  (XID | QUERY "COMMIT")
             GTID  QUERY ddl
    MariaDB  GTID  ([ANNOTATE_ROWS] TABLE_MAP+ ROWS+)*  (XID | QUERY "COMMIT")
             GTID standalone  QUERY ddl
    XA       GTID  [QUERY "XA START"]  …  QUERY "XA END"  XA_PREPARE, and later  GTID  QUERY "XA COMMIT" | "XA ROLLBACK"

MariaDB logs no XA START. After XA_PREPARE in one phase, no XA COMMIT follows. With gtid_mode=OFF, MySQL logs anonymous
GTID events; before 5.7 MySQL logs none, and BEGIN is a transaction's first event.

Reading can resume only between groups. The end of a group is reported by the group's Commit if the group has captured
changes or redefines a tracked table or schema, otherwise by the next Commit or Heartbeat.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from databus.events import (
    Action,
    Begin,
    Commit,
    DatabaseEvent,
    Event,
    Heartbeat,
    OversizedRow,
    QueryEvent,
    RowsEvent,
    Table,
    TableDefinition,
)
from databus.progress import Progress
from databus_binlog import ABSENT, Flavor, TableMap
from databus_binlog import Event as BinlogEvent
from databus_binlog import events as binlog
from databus_changes import doubts
from databus_changes.ddl.statement import DatabaseChange, TableChange
from databus_changes.doubts import Doubt, OnDoubt, stop
from databus_changes.executed import Executed
from databus_changes.statements import StatementReader, bytes_of
from databus_changes.tables import CapturedTables, TableName
from databus_changes.tracker import TableTracker

AnyRows: TypeAlias = binlog.Rows | binlog.OversizedRows

_ACTIONS = {action.value: action for action in Action}


class Translator:
    """Turns one binlog, from a position on, into change events.

    gtids: whether positions carry a GTID set. False while the server may write transactions without GTIDs.
    on_doubt: called with each doubt; raises to stop. If it returns, only what is in doubt is left out. A transaction
        whose outcome is in doubt then has a Begin and no Commit.
    """

    def __init__(
        self,
        captured: CapturedTables,
        flavor: Flavor,
        tracker: TableTracker,
        progress: Progress,
        *,
        gtids: bool = True,
        on_doubt: OnDoubt = stop,
    ) -> None:
        self._tracker = tracker
        self._statements = StatementReader(captured, tracker, self._report)
        self._on_doubt = on_doubt
        self._flavor = flavor
        self._gtids = gtids
        self._executed = Executed(flavor)
        #: table → fingerprint of its last emitted definition
        self._announced: dict[TableName, str] = {}
        #: ordinal in the last emitted Begin
        self._transaction = progress.transaction
        #: GTID event of the open group
        self._gtid: binlog.Gtid | None = None
        #: whether a transaction is open; only then may rows follow
        self._in_transaction = False
        #: the event that began the open transaction: BEGIN or XA START, or MariaDB's GTID event
        self._opening: binlog.Query | binlog.Gtid | None = None
        #: whether the open group's Begin was emitted
        self._begun = False
        #: whether the outcome of the open transaction is in doubt; the rest of the transaction is then left out
        self._abandoned = False
        #: tables with captured changes in the open group
        self._changed: set[TableName] = set()
        #: ordinal of the next row in the open transaction
        self._row = 0
        #: text of the statement that changed the next rows, if the server logs it
        self._query: bytes | None = None
        #: file and offset for the next Heartbeat; None if there is no new position, or the next Commit reports it
        self._moved: tuple[str, int] | None = None
        #: number of row images translated since the reader last reset it; an updated row has two
        self.rows = 0
        #: number of Commits emitted since the reader last reset it
        self.transactions = 0
        #: commit time of the last emitted Begin, or of a later transaction without captured changes, µs since the epoch
        self.time_us = progress.time_us

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._in_transaction

    async def translate(self, events: Iterable[BinlogEvent], tables: Mapping[str, TableMap]) -> list[Event]:
        """Translate consecutive events. `tables` maps the fingerprint in a rows event to its table map."""
        out: list[Event] = []
        for event in events:
            match event:
                case binlog.Rows():
                    table = self._tracker.table_by_fingerprint(event.table) or await self._table(event, tables)
                    if table is not None:
                        self._rows(event, table, out)
                    self._query = None
                case binlog.OversizedRows():
                    table = self._tracker.table_by_fingerprint(event.table) or await self._table(event, tables)
                    if table is not None:
                        self._oversized(event, table, out)
                    self._query = None
                case binlog.Gtid():
                    if self._begun:
                        self._unfinished(event)
                    self._gtid = event
                    self._in_transaction = self._flavor == "mariadb" and not event.standalone
                    self._opening = event if self._in_transaction else None
                case binlog.Xid():
                    self._end(event, event.xid, out)
                case binlog.Query():
                    await self._statement(event, out)
                case binlog.RowsQuery():
                    self._query = event.query
                case binlog.XaPrepare():
                    self._xa_prepare(event, out)
                case binlog.Rotate() if not event.artificial:
                    self._moved = event.next_file, event.position
        return out

    def take_heartbeat(self) -> Heartbeat | None:
        """Return the latest position that no Commit or Heartbeat has reported; None if there is no such position."""
        if self._moved is None:
            return None
        (file, end), self._moved = self._moved, None
        return Heartbeat(self._executed.take(), file, end, self.time_us)

    # --- rows -----------------------------------------------------------------------------------------------------

    async def _table(self, event: AnyRows, tables: Mapping[str, TableMap]) -> Table | None:
        """Return the table of a new table map; None if its columns have no names, which is reported as a doubt.

        In a transaction that is already in doubt, no further doubt is reported.
        """
        table_map = tables[event.table]
        if table_map.has_names:
            return await self._tracker.learn(table_map)
        if self._abandoned:
            return None
        name = table_map.schema, table_map.name
        if not self._in_transaction:
            self._report(doubts.rows_outside_transaction(event, name))
        elif mismatch := self._tracker.mismatch(table_map):
            self._report(doubts.column_mismatch(event, name, mismatch))
        else:
            self._report(doubts.unknown_table(event, name))
        return None

    def _rows(self, event: binlog.Rows, table: Table, out: list[Event]) -> None:
        if not event.complete and self._in_transaction and not self._abandoned:
            absent = {index for image in event.images() for index, value in enumerate(image) if value is ABSENT}
            columns = [table.columns[index].name for index in sorted(absent)]
            self._report(doubts.incomplete_row_image(event, _name(table), columns))
            return
        if self._begin_rows(event, table, out):
            action, fingerprint = _ACTIONS[event.action], table.fingerprint
            head = fingerprint, action, self._row, event.start, event.end
            out.append(RowsEvent(*head, event.rows, self._query, event.table_id))
            self.rows += event.count
            self._row += event.count // 2 if action is Action.UPDATE else event.count

    def _oversized(self, event: binlog.OversizedRows, table: Table, out: list[Event]) -> None:
        """Emit the row of an event that was too large to be read. A server logs such a row in an event of its own."""
        if self._begin_rows(event, table, out):
            action, fingerprint = _ACTIONS[event.action], table.fingerprint
            out.append(OversizedRow(fingerprint, action, self._row, event.start, event.end, event.size))
            self._row += 1

    def _begin_rows(self, event: AnyRows, table: Table, out: list[Event]) -> bool:
        """Emit the Begin and the table's definition that rows need; return False if the rows are left out."""
        if not self._in_transaction:
            self._report(doubts.rows_outside_transaction(event, _name(table)))
            return False
        if self._abandoned:
            return False
        if not self._begun:
            self._begin(event, out)
        self._announce(table, out)
        self._changed.add((table.schema, table.name))
        return True

    # --- statements -----------------------------------------------------------------------------------------------

    async def _statement(self, event: binlog.Query, out: list[Event]) -> None:
        words = event.query[:32].upper().split()
        if words == [b"BEGIN"] or words[:2] in ([b"XA", b"START"], [b"XA", b"BEGIN"]):
            if self._begun:
                self._unfinished(event)
            self._in_transaction = True
            self._opening = event
            return
        if words[:1] == [b"ROLLBACK"]:
            self._require_no_rows(event, doubts.rollback)
        is_end = words in ([b"COMMIT"], [b"ROLLBACK"])
        if not is_end:
            await self._ddl(event, out)
        if is_end or not self._in_transaction:
            self._end(event, event.xid, out)

    async def _ddl(self, event: binlog.Query, out: list[Event]) -> None:
        """Emit DDL on captured tables and databases, and every definition that it changes."""
        if self._gtid and self._gtid.alter in {"start", "rollback"}:  # a two-phase ALTER takes effect at COMMIT ALTER
            return
        ddl = self._statements.read(event)
        if ddl is None:
            return
        before = {change.table: self._tracker.existing(change.table) for change in ddl.captured}
        definitions = await self._tracker.apply(ddl.statement, ddl.tables, as_written=ddl.as_written)
        if definitions:
            self._begin(event, out)
        if ddl.database:
            self._database_change(ddl.database, filter(None, before.values()), event, out)
        else:
            for change in ddl.captured:
                self._table_change(change, before[change.table], event, out)
        for definition in definitions:
            if isinstance(definition, Table):
                self._announce(definition, out)
            else:
                out.append(definition)

    def _table_change(self, change: TableChange, before: Table | None, event: binlog.Query, out: list[Event]) -> None:
        is_drop = change.action is Action.DROP
        table = before if is_drop and before is not None else self._tracker.last_known(change.table)
        if table is None:
            self._report(doubts.undescribed_table(event, change.table))
            return
        self._begin(event, out)
        self._changed.add(change.table)
        if before is not None:
            self._announce(before, out)
        self._announce(table, out)
        query = bytes_of(change.query)
        old = before.fingerprint if before is not None else ""
        out.append(QueryEvent(table.fingerprint, change.action, query, event.start, event.end, old))

    def _database_change(
        self, change: DatabaseChange, dropped: Iterable[Table], event: binlog.Query, out: list[Event]
    ) -> None:
        self._begin(event, out)
        fingerprints = []
        for table in dropped:
            self._changed.add(_name(table))
            self._announce(table, out)
            fingerprints.append(table.fingerprint)
        query, charset = bytes_of(change.query), self._tracker.charset(change.schema)
        out.append(
            DatabaseEvent(change.schema, change.action, query, event.start, event.end, charset, tuple(fingerprints))
        )

    def _announce(self, table: Table, out: list[Event]) -> None:
        """Emit a table's definition, unless it is the one that was emitted last for this table."""
        name = table.schema, table.name
        if self._announced.get(name) != table.fingerprint:
            self._announced[name] = table.fingerprint
            out.append(TableDefinition(table))

    # --- transactions ---------------------------------------------------------------------------------------------

    def _begin(self, event: AnyRows | binlog.Query, out: list[Event]) -> None:
        """Emit the Begin of the open group, once."""
        if self._begun:
            return
        self._begun = True
        self._moved = None
        self._row = 0
        self._transaction += 1
        gtid = self._gtid.gtid if self._gtid else ""
        self._set_time(event)
        opening = self._opening or event
        # MariaDB logs no BEGIN, which would name the thread, but a DDL statement names its own
        thread = next((each.thread_id for each in (event, opening) if isinstance(each, binlog.Query)), 0)
        origin = self._transaction, gtid, event.file, event.server_id, thread, self.time_us
        out.append(Begin(*origin, opening.start, opening.end))

    def _xa_prepare(self, event: binlog.XaPrepare, out: list[Event]) -> None:
        """End an XA transaction. Unless it is committed in one phase, a later event decides its outcome."""
        if not event.one_phase:
            self._require_no_rows(event, doubts.xa_prepare)
        self._end(event, None, out)

    def _end(self, event: BinlogEvent, xid: int | None, out: list[Event]) -> None:
        """End the open group: emit its Commit, or keep its end for the next Commit or Heartbeat."""
        gtid = self._gtid.gtid if self._gtid and self._gtids else ""
        if self._begun and not self._abandoned:
            out.append(Commit(self._executed.take(gtid), event.file, event.end, xid, event.start))
            self.transactions += 1
        else:
            self._executed.add(gtid)
            self._moved = event.file, event.end
            self._set_time(event)
        self._reset()

    def _set_time(self, event: BinlogEvent) -> None:
        """Take over the open group's commit time.

        Servers that do not log it in microseconds write the GTID event when they commit; other events have the time
        when their statement began.
        """
        commit_time_us = self._gtid.commit_time_us if self._gtid else 0
        self.time_us = commit_time_us or (self._gtid or event).time * 1_000_000

    def _unfinished(self, event: BinlogEvent) -> None:
        """Handle the start of a transaction while the previous one, with captured changes, has not ended."""
        if not self._abandoned:
            self._report(doubts.unfinished_transaction(event, self._changed))
        self._reset()

    def _require_no_rows(
        self, event: BinlogEvent, make_doubt: Callable[[BinlogEvent, Iterable[TableName]], Doubt]
    ) -> None:
        """If the open transaction has captured rows, report a doubt: the event does not show their outcome.

        A ROLLBACK does not undo DDL: MariaDB logs one after the DROP of a CREATE OR REPLACE TABLE … SELECT that failed.
        """
        if self._begun and self._row and not self._abandoned:
            self._report(make_doubt(event, self._changed))

    def _report(self, doubt: Doubt) -> None:
        self._on_doubt(doubt)
        self._abandoned |= doubt.whole_transaction

    def _reset(self) -> None:
        self._gtid = self._query = None
        self._in_transaction = self._begun = self._abandoned = False
        self._changed.clear()
        self._opening = None


def _name(table: Table) -> TableName:
    return table.schema, table.name

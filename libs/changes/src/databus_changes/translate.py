"""Turns binlog events into change events: transactions with captured changes, and for all others only a position.

Binlog events come in the following order. Each GTID event begins a group: a transaction, or a single statement.

    MySQL    GTID  QUERY "BEGIN"  ([ROWS_QUERY] TABLE_MAP+ ROWS+)*  (XID | QUERY "COMMIT")
             GTID  QUERY ddl
    MariaDB  GTID  ([ANNOTATE_ROWS] TABLE_MAP+ ROWS+)*  (XID | QUERY "COMMIT")
             GTID standalone  QUERY ddl
    XA       GTID  [QUERY "XA START"]  …  QUERY "XA END"  XA_PREPARE, and later  GTID  QUERY "XA COMMIT" | "XA ROLLBACK"

MariaDB logs no XA START. After XA_PREPARE in one phase, no XA COMMIT follows. The rows of an XA transaction are held
until it is known whether they take effect (`databus_changes.prepared`). With gtid_mode=OFF, MySQL logs anonymous
GTID events; before 5.7 MySQL logs none, and BEGIN is a transaction's first event.

Reading can resume only between groups. The end of a group is reported by the group's Commit if the group has captured
changes or redefines a tracked table or schema, otherwise by the next Commit or Heartbeat.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from databus_binlog import ABSENT, Flavor, Position, TableMap
from databus_binlog import Event as BinlogEvent
from databus_binlog import events as binlog
from databus_changes import doubts
from databus_changes.ddl_events import DdlEvents
from databus_changes.definitions import Definitions
from databus_changes.doubts import Doubt, OnDoubt, Parking, stop
from databus_changes.group import Group
from databus_changes.held_rows import HeldRows, HeldTransaction
from databus_changes.own_transactions import OwnTransactions
from databus_changes.partial_rows import complete
from databus_changes.prepared import PreparedTransactions
from databus_changes.reached import Reached
from databus_changes.statements import StatementReader
from databus_changes.tables import CapturedTables, TableName
from databus_changes.tracker import TableTracker
from databus_changes.xa import XaTransactions
from databus_core.events import Action, Commit, Event, OversizedRow, RowsEvent, Table
from databus_core.progress import Progress

AnyRows: TypeAlias = binlog.Rows | binlog.OversizedRows

_ACTIONS = {action.value: action for action in Action}


class Translator:
    """Turns one binlog, from a position on, into change events.

    start: where the binlog is read from; None: not known. in_order: whether the server's log has exactly its GTID set
        before its file and offset.
    gtids: whether positions carry a GTID set. False while the server may write transactions without GTIDs.
    partial: whether rows that lack only what `binlog_row_image=NOBLOB` leaves out are no doubt.
    on_doubt: called with each doubt; raises to stop. If it returns, only what is in doubt is left out. A transaction
        whose outcome is in doubt then has a Begin and no Commit.
    parking: gets the doubts instead of `on_doubt`, and decides what is left out.
    """

    def __init__(
        self,
        captured: CapturedTables,
        flavor: Flavor,
        tracker: TableTracker,
        progress: Progress,
        *,
        start: Position | None = None,
        in_order: bool = False,
        gtids: bool = True,
        partial: bool = False,
        on_doubt: OnDoubt = stop,
        parking: Parking | None = None,
        prepared: PreparedTransactions | None = None,
    ) -> None:
        self._tracker = tracker
        self._flavor = flavor
        self._gtids = gtids
        self._accepts_partial = partial
        #: up to where the binlog is translated
        self.reached = Reached(flavor, progress, start, in_order=in_order)
        #: the open group
        self.group = Group(self.reached, on_doubt, parking)
        #: transactions that are not the source's
        self.own = OwnTransactions(self.reached, self.group, in_order=in_order, gtids=gtids)
        self.definitions = Definitions()
        #: XA transactions whose outcome is not known
        self.prepared = prepared or PreparedTransactions()
        self._xa = XaTransactions(self.prepared, tracker, self.definitions, self.group, self.reached)
        self._statements = StatementReader(captured, tracker, self.group.report)
        self._ddl_events = DdlEvents(tracker, self.definitions, self.group)
        #: what the last call of `translate` has translated, and how many of these events end with a complete group
        self._out: list[Event] = []
        self._complete = 0
        #: number of row images translated since the reader last reset it; an updated row has two
        self.rows = 0
        #: number of Commits emitted since the reader last reset it
        self.transactions = 0

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.group.in_transaction

    async def translate(self, events: Iterable[BinlogEvent], tables: Mapping[str, TableMap]) -> Iterable[Event]:
        """Translate consecutive events. `tables` maps the fingerprint in a rows event to its table map.

        Iterate over the result once, before the next call: it may be larger than the memory. If an error is raised,
        `rest` returns what precedes it.
        """
        out = self._out = []
        self._complete = 0
        for event in events:
            match event:
                case binlog.Rows():
                    table = self._tracker.table_by_fingerprint(event.table) or await self._table(event, tables)
                    if table is not None:
                        self._rows(event, table, out)
                    await self.group.park(out)
                    self.group.query = None
                case binlog.OversizedRows():
                    table = self._tracker.table_by_fingerprint(event.table) or await self._table(event, tables)
                    if table is not None:
                        self._oversized(event, table, out)
                    await self.group.park(out)
                    self.group.query = None
                case binlog.Gtid():
                    if self.group.begun or self.group.skipped:
                        await self._unfinished(event, out)
                    self.group.enter(event)
                    self.group.in_transaction = self._flavor == "mariadb" and not event.standalone
                    self.group.opening = event if self.group.in_transaction else None
                    self.group.held = HeldTransaction(event) if event.xa_prepare else None
                case binlog.Xid():
                    await self._end(event, event.xid, out)
                case binlog.Query():
                    await self._statement(event, out)
                case binlog.RowsQuery():
                    self.group.query = event.query
                case binlog.XaPrepare():
                    self._xa.prepare(event, out)
                    await self._end(event, None, out)
                case binlog.Rotate() | binlog.Heartbeat():
                    self.reached.move(event)
        return self.prepared.spliced(out)

    def rest(self) -> Iterable[Event]:
        """Return the complete groups that `translate` had translated when it raised an error.

        A part of the next one would keep them from being published: it has no end.
        """
        return self.prepared.spliced(self._out[: self._complete])

    # --- rows -----------------------------------------------------------------------------------------------------

    async def _table(self, event: AnyRows, tables: Mapping[str, TableMap]) -> Table | None:
        """Return the table of a new table map; None if its columns have no names, which is reported as a doubt.

        In a transaction that is already in doubt, no further doubt is reported.
        """
        table_map = tables[event.table]
        if table_map.has_names:
            return await self._tracker.learn(table_map)
        if self.group.abandoned:
            return None
        name = table_map.schema, table_map.name
        if not self.group.in_transaction:
            self.group.report(doubts.rows_outside_transaction(event, name))
        elif mismatch := self._tracker.mismatch(table_map):
            self.group.report(doubts.column_mismatch(event, name, mismatch))
        else:
            self.group.report(doubts.unknown_table(event, name))
        return None

    def _rows(self, event: binlog.Rows, table: Table, out: list[Event]) -> None:
        rows, partial = event.rows, False
        if not event.complete and self._accepts_partial and (completed := complete(event, table, self._flavor)):
            rows, partial = completed
        elif not event.complete and (self.group.in_transaction or self.group.skipped) and not self.group.abandoned:
            absent = {index for image in event.images() for index, value in enumerate(image) if value is ABSENT}
            columns = [table.columns[index].name for index in sorted(absent)]
            self.group.report(doubts.incomplete_row_image(event, _name(table), columns))
            return
        if self._begin_rows(event, table, out):
            action, fingerprint = _ACTIONS[event.action], table.fingerprint
            head = fingerprint, action, self.group.row, event.start, event.end
            self._emit(RowsEvent(*head, rows, self.group.query, event.table_id, partial), table, out)
            self.rows += event.count
            self.group.row += event.count // 2 if action is Action.UPDATE else event.count

    def _oversized(self, event: binlog.OversizedRows, table: Table, out: list[Event]) -> None:
        """Emit the row of an event that was too large to be read. A server logs such a row in an event of its own."""
        if self._begin_rows(event, table, out):
            action, fingerprint = _ACTIONS[event.action], table.fingerprint
            head = fingerprint, action, self.group.row, event.start, event.end
            self._emit(OversizedRow(*head, event.size), table, out)
            self.group.row += 1

    def _begin_rows(self, event: AnyRows, table: Table, out: list[Event]) -> bool:
        """Begin the group if these are its first rows; return False if the rows are left out."""
        if not self.group.in_transaction:
            self.group.report(doubts.rows_outside_transaction(event, _name(table)))
            if not self.group.skipped:
                return False
        if self.group.held is None and self.group.leaves_out(table):
            return False
        if not (self.group.begun or self.group.abandoned):
            self.group.begin(event, out)
        if self.group.abandoned or self.group.condemned:
            self.group.doubt_also(table)
            return False
        self.group.change(_name(table))
        return True

    def _emit(self, rows: HeldRows, table: Table, out: list[Event]) -> None:
        """Emit rows, and before them their table's definition; or hold them."""
        if self.group.held is None:
            self.definitions.emit(table, out)
            out.append(rows)
        else:
            self.group.held.append(rows, table)

    # --- statements -----------------------------------------------------------------------------------------------

    async def _statement(self, event: binlog.Query, out: list[Event]) -> None:
        words = event.query[:32].upper().split()
        if words == [b"BEGIN"] or words[:2] in ([b"XA", b"START"], [b"XA", b"BEGIN"]):
            if self.group.begun:
                await self._unfinished(event, out)
            if self.group.gtid is None:
                self.group.enter(event)
            held = HeldTransaction(self.group.gtid or event) if words[0] == b"XA" else None
            self.group.open(event, held)
            return
        if not self.group.is_open:
            self.group.enter(event)
        if words[:2] in ([b"XA", b"COMMIT"], [b"XA", b"ROLLBACK"]):
            if self.group.begun:
                await self._unfinished(event, out)
            await self._xa.decide(event, out)
            await self._end(event, event.xid, out)
            return
        if words[:1] == [b"ROLLBACK"]:
            self._require_no_rows(event, doubts.rollback)
        is_end = words in ([b"COMMIT"], [b"ROLLBACK"])
        if not is_end:
            await self._ddl(event, out)
        if is_end or not self.group.in_transaction:
            await self._end(event, event.xid, out)

    async def _ddl(self, event: binlog.Query, out: list[Event]) -> None:
        # a two-phase ALTER takes effect at COMMIT ALTER
        if self.group.gtid and self.group.gtid.alter in {"start", "rollback"}:
            return
        ddl = self._statements.read(event)
        await self.group.park(out)
        if ddl is not None and not self.group.held:  # in an XA transaction, servers allow only DDL on temporary tables
            await self._ddl_events.emit(ddl, event, out)

    # --- transactions ---------------------------------------------------------------------------------------------

    async def _end(self, event: BinlogEvent, xid: int | None, out: list[Event]) -> None:
        """End the open group: emit its Commit, or keep its end for the next Commit or Heartbeat."""
        gtid = self.group.gtid.gtid if self.group.gtid and self._gtids else ""
        await self._xa.commit_one_phase(event, out)
        await self.group.end_skip(event, out)
        if self.group.begun and not self.group.abandoned:
            out.append(self.reached.commit(event, gtid, xid))
            self.transactions += 1
        else:
            self.reached.skip(event, gtid)
            self.reached.set_time(event, self.group.gtid)
        self.reached.place = event.file, event.end
        self.group.close()
        self._complete = len(out)

    async def _unfinished(self, event: BinlogEvent, out: list[Event]) -> None:
        """Handle the start of a transaction while the previous one, with captured changes, has not ended."""
        if self.group.condemned or self.group.skipped:
            await self.group.end_skip(event, out)
            # the server undoes a transaction that has no end, and may use its GTID again
            gtid = "" if self.group.in_transaction or not self.group.gtid else self.group.gtid.gtid
            executed = self.reached.executed.take(gtid if self._gtids else "")
            out.append(Commit(executed, event.file, event.start, None, event.start))
        elif not self.group.abandoned:
            held, self.group.held = self.group.held, None
            doubt = doubts.unfinished_transaction(event, self.group.changed)
            self.group.report(replace(doubt, whole_transaction=held is None))  # held rows have not been emitted
            await self.group.park(out)
        self.group.close()

    def _require_no_rows(
        self, event: BinlogEvent, make_doubt: Callable[[BinlogEvent, Iterable[TableName]], Doubt]
    ) -> None:
        """If the open transaction has captured rows, report a doubt: the event does not show their outcome.

        A ROLLBACK does not undo DDL: MariaDB logs one after the DROP of a CREATE OR REPLACE TABLE … SELECT that failed.
        """
        if self.group.begun and self.group.row and not self.group.abandoned:
            self.group.report(make_doubt(event, self.group.changed))


def _name(table: Table) -> TableName:
    return table.schema, table.name

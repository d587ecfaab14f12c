"""The open group of binlog events: what is known of it, and what of it is left out because it is in doubt."""

from collections.abc import Iterable
from dataclasses import replace

from databus_binlog import Event as BinlogEvent
from databus_binlog import events as binlog
from databus_changes import doubts
from databus_changes.doubts import Doubt, OnDoubt, Parking
from databus_changes.held_rows import HeldTransaction
from databus_changes.reached import Reached
from databus_changes.statements import Ddl
from databus_changes.tables import TableName
from databus_core.events import Begin, Event, Skipped, Table


class Group:
    """The open group, if one is open. `on_doubt` and `parking`: as in `Translator`."""

    def __init__(self, reached: Reached, on_doubt: OnDoubt, parking: Parking | None) -> None:
        self._reached = reached
        self._on_doubt = on_doubt
        self._parking = parking
        #: its first event; None: not known
        self.first: binlog.Query | binlog.Gtid | None = None
        #: its GTID event
        self.gtid: binlog.Gtid | None = None
        #: whether a transaction is open; only then may rows follow
        self.in_transaction = False
        #: the event that began the open transaction: BEGIN or XA START, or MariaDB's GTID event
        self.opening: binlog.Query | binlog.Gtid | None = None
        #: its rows, if it may end in XA PREPARE; else they are emitted
        self.held: HeldTransaction | None = None
        #: whether it has captured changes: its Begin was emitted, or they are held
        self.begun = False
        #: whether the outcome of the open transaction is in doubt; the rest of the transaction is then left out
        self.abandoned = False
        #: the doubt about the outcome of the open transaction, if all its rows are left out
        self.condemned: Doubt | None = None
        #: whether an operator has requested that its rows are not published
        self.skipped = False
        #: tables whose rows are not published because of that
        self._left_out: set[TableName] = set()
        #: tables with captured changes
        self.changed: set[TableName] = set()
        #: ordinal of the next row
        self.row = 0
        #: text of the statement that changed the next rows, if the server logs it
        self.query: bytes | None = None

    @property
    def is_open(self) -> bool:
        """Whether a group is open."""
        return self.in_transaction or self.begun or self.gtid is not None

    @property
    def may_be_passed(self) -> bool:
        """Whether no group is open, and none of the next ones is to be skipped, left out or a reason to stop.

        Then ordinary transactions can take the fast path, apart from those with rows of tables that are left out.
        """
        if self.is_open or self.query is not None:
            return False
        return self._parking is None or not self._parking.may_concern(self._reached.place)

    @property
    def transaction(self) -> str:
        """GTID or position, by which a command can name the group; empty: not known."""
        if self.gtid and self.gtid.gtid:
            return self.gtid.gtid
        return f"{self.first.file}:{self.first.start}" if self.first else ""

    def enter(self, event: binlog.Query | binlog.Gtid) -> None:
        """Take the group's first event."""
        self.first = event
        self.gtid = event if isinstance(event, binlog.Gtid) else None
        if self._parking:
            self.skipped = self._parking.open(self.gtid.gtid if self.gtid else "", (event.file, event.start))

    def open(self, event: binlog.Query | binlog.Gtid, held: HeldTransaction | None) -> None:
        """Open a transaction."""
        self.in_transaction, self.opening, self.held = True, event, held

    def begin(self, event: BinlogEvent, out: list[Event]) -> None:
        """Emit the group's Begin, once. While its rows are held, only mark that it has some."""
        if self.begun:
            return
        self.begun = True
        self.row = 0
        if self.held is not None:
            return
        gtid = self.gtid.gtid if self.gtid else ""
        self._reached.set_time(event, self.gtid)
        opening = self.opening or event
        # MariaDB logs no BEGIN, which would name the thread; a DDL statement names its own, newer GTID events any
        thread = next((each.thread_id for each in (event, opening) if isinstance(each, binlog.Query)), 0)
        thread = thread or (self.gtid.thread_id if self.gtid else 0)
        origin = self._reached.begin(), gtid, event.file, event.server_id, thread, self._reached.time_us
        out.append(Begin(*origin, opening.start, opening.end))
        if self.skipped:
            out.append(Skipped())
        elif self._parking:
            self.condemned = self._parking.begin((event.file, opening.start))

    def close(self) -> None:
        """Forget the group."""
        self.first = self.gtid = self.query = None
        self.in_transaction = self.begun = self.abandoned = self.skipped = False
        self.condemned = None
        self.changed.clear()
        self._left_out.clear()
        self.opening = self.held = None

    def report(self, doubt: Doubt) -> None:
        """Report a doubt. One about rows that are held is reported when they are committed."""
        self.abandoned |= doubt.whole_transaction and not self.skipped
        if self.held is not None:
            self.held.doubts.append(replace(doubt, whole_transaction=False))
        elif self._parking:
            self._parking.report(replace(doubt, transaction=self.transaction))
        else:
            self._on_doubt(doubt)

    def change(self, table: TableName) -> None:
        """Take note that captured rows of a table follow."""
        if self.held is None and table not in self._left_out:
            self._left_out.add(table)
            self.report_skipped([table])
        self.changed.add(table)

    def report_skipped(self, tables: Iterable[TableName]) -> None:
        """Report that the rows of these tables are not published, if the group is skipped."""
        if self.skipped and self.first:
            self.report(doubts.skipped(self.first, self.transaction, tables))

    async def end_skip(self, event: BinlogEvent, out: list[Event]) -> None:
        """If the group is skipped, park its tables at its end."""
        if self.skipped and self._parking:
            if self.held is not None:  # it has no rows, or no end: then its rows never take effect
                self.held, self.begun = None, False
            self.begin(event, out)
            out += await self._parking.end_skip()

    def doubt_also(self, table: Table) -> None:
        """Extend the doubt about the outcome of the transaction to a table whose rows are left out with it."""
        name = table.schema, table.name
        doubt = self.condemned
        if self.held is not None and self.held.doubts:
            doubt = self.held.doubts[-1]
        if doubt is not None and name not in doubt.tables and name not in self.changed:
            self.changed.add(name)
            self.report(replace(doubt, tables=frozenset({name}), whole_transaction=False))

    def leaves_out(self, table: Table) -> bool:
        """Return whether the changes of a table are left out."""
        return self._parking is not None and self._parking.leaves_out((table.schema, table.name))

    def drop(self, table: TableName, out: list[Event]) -> None:
        """Take note that the group drops a table."""
        if self._parking:
            out += self._parking.dropped(table)

    def alter(self, ddl: Ddl, out: list[Event]) -> None:
        """Take note of what a statement renames, and which columns it removes."""
        if self._parking:
            out += self._parking.renamed(ddl.renames)
            for change in ddl.captured:
                out += self._parking.columns_removed(change.table, ddl.statement.removed_columns)

    async def park(self, out: list[Event]) -> None:
        """Park the tables of the reported doubts."""
        if self._parking:
            out += await self._parking.park()

"""Ends XA transactions: holds their rows from XA PREPARE on, and emits them at XA COMMIT."""

from databus_binlog import Event as BinlogEvent
from databus_binlog import events as binlog
from databus_changes import doubts
from databus_changes.definitions import Definitions
from databus_changes.group import Group
from databus_changes.held_rows import HeldTransaction
from databus_changes.prepared import PreparedTransactions
from databus_changes.reached import Reached
from databus_changes.tracker import TableTracker
from databus_core.errors import SourceRefused, skip_advice
from databus_core.events import Event


class XaTransactions:
    """The XA transactions of one binlog, and those that were prepared before it begins."""

    def __init__(
        self,
        prepared: PreparedTransactions,
        tracker: TableTracker,
        definitions: Definitions,
        group: Group,
        reached: Reached,
    ) -> None:
        self._prepared = prepared
        self._tracker = tracker
        self._definitions = definitions
        self._group = group
        self._reached = reached

    def prepare(self, event: binlog.XaPrepare, out: list[Event]) -> None:
        """Keep the rows of the open transaction. Unless it is committed in one phase, a later event decides on it."""
        held = self._group.held
        if held is not None and not event.one_phase:
            self._group.skipped = False  # its rows take effect in another transaction
            if self._group.abandoned:
                held.drop_rows()
            self._group.held, self._group.begun = None, False
            out += self._prepared.prepare(event, held, self._reached.executed)

    async def decide(self, event: binlog.Query, out: list[Event]) -> None:
        """Handle XA COMMIT or XA ROLLBACK of a prepared transaction."""
        try:
            held, decided = await self._prepared.decide(event, self._group.report, skipped=self._group.skipped)
        except SourceRefused as error:
            if not error.is_lasting:
                raise
            raise SourceRefused(error.reason, f"{error}; {skip_advice(self._group.transaction)}") from error
        if held is not None:
            await self._release(held, event, out)
        elif self._group.skipped:
            self._group.begin(event, out)
        out += decided

    async def commit_one_phase(self, event: BinlogEvent, out: list[Event]) -> None:
        """Emit the rows of the open transaction if they are held: it was committed without a second phase."""
        held = self._group.held
        if held is not None and not held.is_empty:
            if self._group.abandoned:
                held.drop_rows()
            self._group.held, self._group.begun = None, False
            await self._release(held, event, out)

    async def _release(self, held: HeldTransaction, event: BinlogEvent, out: list[Event]) -> None:
        """Emit the rows of a transaction that `event` commits, except those of tables that are parked."""
        present = self._tracker.present(held.tables)
        for doubt in held.doubts:
            self._group.report(doubt)
        if changed := [held.tables[each] for each in held.tables.keys() - present.keys()]:
            self._group.report(doubts.prepared_tables(event, ((each.schema, each.name) for each in changed)))
        await self._group.park(out)
        published = {each: table for each, table in present.items() if not self._group.leaves_out(table)}
        if published:
            self._group.begin(event, out)
            self._group.report_skipped((each.schema, each.name) for each in published.values())
        for table in published.values():
            self._definitions.emit(table, out)
        self._prepared.release(held, published, out)

"""Emits DDL on captured tables and databases, and every definition that it changes."""

from collections.abc import Iterable

from databus_binlog import events as binlog
from databus_changes import doubts
from databus_changes.ddl.statement import DatabaseChange, TableChange
from databus_changes.definitions import Definitions
from databus_changes.group import Group
from databus_changes.statements import Ddl, bytes_of
from databus_changes.tracker import TableTracker
from databus_core.events import Action, DatabaseEvent, Event, QueryEvent, Table


class DdlEvents:
    """Emits the DDL of one binlog into its open group."""

    def __init__(self, tracker: TableTracker, definitions: Definitions, group: Group) -> None:
        self._tracker = tracker
        self._definitions = definitions
        self._group = group

    async def emit(self, ddl: Ddl, event: binlog.Query, out: list[Event]) -> None:
        """Apply a statement to the known tables, and emit what it changes of captured ones."""
        before = {change.table: self._tracker.existing(change.table) for change in ddl.captured}
        definitions = await self._tracker.apply(ddl.statement, ddl.tables, as_written=ddl.as_written)
        if definitions:
            self._group.begin(event, out)
        if ddl.database:
            self._database_change(ddl.database, filter(None, before.values()), event, out)
        else:
            for change in ddl.captured:
                self._table_change(change, before[change.table], event, out)
            self._group.alter(ddl, out)
            if ddl.arrived:  # reported after the renames: the doubt is about the new table
                self._group.report(doubts.unseen_rows(event, ddl.arrived))
                await self._group.park(out)
        for definition in definitions:
            if isinstance(definition, Table):
                self._definitions.emit(definition, out)
            else:
                out.append(definition)

    def _table_change(self, change: TableChange, before: Table | None, event: binlog.Query, out: list[Event]) -> None:
        is_drop = change.action is Action.DROP
        table = before if is_drop and before is not None else self._tracker.last_known(change.table)
        if table is None:
            self._group.report(doubts.undescribed_table(event, change.table))
            return
        self._group.begin(event, out)
        self._group.changed.add(change.table)
        if is_drop:
            self._group.drop(change.table, out)
        if before is not None:
            self._definitions.emit(before, out)
        self._definitions.emit(table, out)
        query = bytes_of(change.query)
        old = before.fingerprint if before is not None else ""
        out.append(QueryEvent(table.fingerprint, change.action, query, event.start, event.end, old))

    def _database_change(
        self, change: DatabaseChange, dropped: Iterable[Table], event: binlog.Query, out: list[Event]
    ) -> None:
        self._group.begin(event, out)
        fingerprints = []
        for table in dropped:
            self._group.changed.add((table.schema, table.name))
            self._group.drop((table.schema, table.name), out)
            self._definitions.emit(table, out)
            fingerprints.append(table.fingerprint)
        query, charset = bytes_of(change.query), self._tracker.charset(change.schema)
        out.append(
            DatabaseEvent(change.schema, change.action, query, event.start, event.end, charset, tuple(fingerprints))
        )

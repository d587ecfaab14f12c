"""What the reader of the model of backfills makes of the changes in a log."""

from model.backfill_changes import KEYLESS, NAMES, UNCAPTURED, Change, Fate, Transaction
from model.backfill_loads import Loads
from model.backfill_parking import Parking
from model.backfill_pipe import Event, Skip, SkipEnded, Skipped
from model.backfill_stream import Stream


class Translation:
    """Publishes changes, and shows them to the backfills; parks the tables of those in doubt."""

    def __init__(self, stream: Stream, loads: Loads, parking: Parking, rules: frozenset[str]) -> None:
        self._stream, self._loads, self._parking, self._rules = stream, loads, parking, rules

    def skip(self, skip: Skip, transaction: Transaction, events: list[Event]) -> None:
        """Let the publisher make dead letters of a transaction's rows; park its tables at its end."""
        events.append(Skipped(skip, transaction))
        doubts = [change.table for change in transaction.logged if change.doubt]
        if transaction.fate is not Fate.COMMITTED:
            doubts = [change.table for change in transaction.logged] or [*self._stream.tables]
        rows: list[str] = []
        for change in transaction.logged:
            is_row = change.kind == "row"
            if is_row and not change.doubt and not self._parking.leaves_out(change.table):
                rows.append(change.table)
            if not change.doubt and ("letters" if is_row else "skip DDL") in self._rules:
                self.publish(change, events)
        parked = (rows if "skip parks" in self._rules else []) + (doubts if "skip doubts" in self._rules else [])
        for table in parked:
            self._parking.doubt(table, events)
        if "skip ends" in self._rules:
            events.append(SkipEnded(skip.number))

    def publish(self, change: Change, events: list[Event]) -> None:
        table = change.table
        if change.kind in NAMES:
            self._name(change, events)
            return
        if change.doubt:
            if "park" in self._rules:
                self._parking.doubt(table, events)
            return
        if self._parking.leaves_out(table):
            return
        events.append(change)
        if change.kind == "row":
            self._loads.collect(change)
        else:
            self._define(change, events)

    def _define(self, change: Change, events: list[Event]) -> None:
        """Handle DDL on a table. A table without key is spliced in where its view was taken, so DDL does not matter."""
        state = self._stream.states[change.table]
        if "DDL" in self._rules and change.table != KEYLESS:
            self._loads.drop(change.table)
        if change.kind == "key change" and "key change" in self._rules and not state.stage.ended:
            self._stream.move(change.table, state._replace(last=-1), events)

    def _name(self, change: Change, events: list[Event]) -> None:
        """Create, drop or rename tables. That they are gone is published, even if they are parked."""
        moved = [rename for rename in change.renames if self._parking.is_published(rename, change.renames)]
        events.append(change._replace(renames=tuple(moved)))
        if "DDL" in self._rules:
            for table in change.names - {KEYLESS, UNCAPTURED}:
                self._loads.drop(table)
        tables = self._stream.tables
        if change.kind == "create":
            tables.add(change.table)
            return
        if "statement" not in self._rules:
            self._stream.append(events[:])
            events.clear()
        if change.kind == "drop":
            tables.remove(change.table)
            self._parking.gone(change.table, events)
        else:
            tables -= {old for old, _ in change.renames}
            tables |= {new for _, new in change.renames} - {UNCAPTURED}
            self._parking.renamed(change.renames, events)

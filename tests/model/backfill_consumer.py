"""A consumer of everything that is committed; it compares itself with the source after every group."""

from model.backfill_changes import KEYED, KEYLESS, KEYS, TABLES, UNCAPTURED, Change, Rows, apply, apply_all, no_rows
from model.backfill_pipe import Emptied, Group, Mode, Moved, Read, Skipped, Stage, State
from model.backfill_source import Source
from model.world import Violated


class Consumer:
    """Upserts by key, deletes by key, and empties a table on TRUNCATE; rows of a table without key are counted."""

    def __init__(self, source: Source, *, start: int, loaded: dict[str, int]) -> None:
        """Start behind the first `start` transactions. `loaded`: the last key of each table that is loaded.

        If it is KEYS, the table is complete; if it is -1, nothing was loaded.
        """
        self._source = source
        self.executed, self.ordinal = 1, 0
        self.states = {table: State() for table in TABLES}
        #: the source's rows at the stream's position
        self._truth = no_rows()
        #: requests for tables that are done or cancelled
        self._ended: set[tuple[str, int]] = set()
        #: requests to skip a transaction that were carried out
        self.skipped: set[int] = set()
        for number in range(1, start + 1):
            self._advance(number)
        #: there is nothing to load of tables that do not exist
        self._complete = {table for table in TABLES if loaded[table] == KEYS or table not in self._truth}
        for table in sorted(set(TABLES) - self._complete):
            if table == KEYLESS:
                self.states[table] = State(Mode.PARKED)
            elif loaded[table] >= 0:
                self.states[table] = State(stage=Stage.RUNNING, last=loaded[table], request=1)
        #: tables that were never complete, and that nothing was taken from
        self._new = set(TABLES) - self._complete
        self.rows = {table: dict(self._truth.get(table, {})) for table in TABLES}
        for table in sorted(set(TABLES) - self._complete):
            self.rows[table] = _up_to(loaded[table], self.rows[table])

    @property
    def tables(self) -> set[str]:
        """The tables that exist at the stream's position."""
        return set(self._truth)

    def take(self, group: Group) -> None:
        if group.ordinal != self.ordinal + 1:
            raise Violated(f"ordinal {group.ordinal} follows {self.ordinal}: {group}")
        self.ordinal = group.ordinal
        before = dict(self.states)
        skipped: Skipped | None = None
        letters: list[Change] = []
        for event in group.events:
            if isinstance(event, Skipped):
                skipped = event
            elif isinstance(event, Change) and skipped and event.kind == "row":
                letters.append(event)
            elif isinstance(event, Change):
                self._change(event, group)
            elif isinstance(event, Emptied):
                self.rows[event.table] = {}
                self._lose(event.table)
            elif isinstance(event, Read):
                self._read(event, before[event.table], group)
            elif isinstance(event, Moved):
                self._move(event)
        if skipped:
            self._skip(skipped, letters, before, group)
        if group.number:
            if self.executed >> group.number & 1:
                raise Violated(f"published again: {group}")
            self._advance(group.number)
            self._verify_followed(group.number, before)
        for table in TABLES:
            self._compare(table, group)

    def equal(self) -> bool:
        """Whether all tables are complete and equal to the source."""
        rows = {table: rows for table, rows in self.rows.items() if table in self._truth or rows}
        return self.executed == self._source.all and self._complete == set(TABLES) and rows == self._truth

    def _lose(self, table: str) -> None:
        self._complete.discard(table)
        self._new.discard(table)

    def _advance(self, number: int) -> None:
        if number not in self._source.transactions:
            raise Violated(f"transaction {number} was never committed")
        self.executed |= 1 << number
        for change in self._source.transactions[number].effect:
            apply_all(self._truth, change)

    def _change(self, change: Change, group: Group) -> None:
        if change.kind == "rename":
            self._rename(change)
        elif change.kind in ("create", "drop"):
            self._forget(change.table)
            if change.kind == "create" and self.states[change.table].mode is Mode.PARKED:
                self._complete.discard(change.table)
        elif self.states[change.table].mode is Mode.PARKED:
            raise Violated(f"a parked table's change is published: {change} in {group}")
        else:
            self.rows[change.table] = apply(self.rows[change.table], change)

    def _rename(self, change: Change) -> None:
        """Rename tables. If another table still has the new name, it keeps its rows, too, and is not complete."""
        moved = {new: (self.rows[old], old in self._complete, old in self._new) for old, new in change.renames}
        for old, _ in change.renames:
            self._forget(old)
        moved.pop(UNCAPTURED, None)
        for new, (rows, complete, is_new) in moved.items():
            self.rows[new] |= rows
            if not complete:
                self._complete.discard(new)
                self._new |= {new} if is_new else set()

    def _forget(self, table: str) -> None:
        """Remove a table: all rows of one that is created later are in changes."""
        self.rows[table] = {}
        self._complete.add(table)
        self._new.discard(table)

    def _verify_followed(self, number: int, before: dict[str, State]) -> None:
        for change in self._source.transactions[number].effect:
            for old, new in change.renames:
                if new != UNCAPTURED and not before[old].stage.ended and self.states[new].stage.ended:
                    raise Violated(f"the backfill of {old} is gone after {change}")

    def _read(self, row: Read, state: State, group: Group) -> None:
        if row.table == KEYLESS:
            self.rows[row.table][row.key] = self.rows[row.table].get(row.key, 0) + row.value
            return
        if state.stage is not Stage.RUNNING or state.mode is Mode.PARKED:
            raise Violated(f"rows of a backfill that does not run: {group} after {state}")
        if row.key <= state.last:
            raise Violated(f"read twice: {row} after {state}")
        self.rows[row.table][row.key] = row.value

    def _skip(self, skipped: Skipped, letters: list[Change], before: dict[str, State], group: Group) -> None:
        """Verify the dead letters of a transaction: all of its rows, without those of tables in doubt."""
        if skipped.skip.request in self.skipped:
            raise Violated(f"skipped twice because of one request: {group}")
        self.skipped.add(skipped.skip.request)
        moved = [event for event in group.events if isinstance(event, Moved)]
        reported = {event.table for event in moved if event.state.reported}
        out = reported | {table for table, state in before.items() if state.mode is Mode.PARKED}
        rows = [change for change in skipped.transaction.logged if change.kind == "row" and not change.doubt]
        if [row for row in rows if row.table not in out] != [row for row in letters if row.table not in reported]:
            raise Violated(f"dead letters {letters} instead of {rows}: {group}")

    def _move(self, event: Moved) -> None:
        table, state = event
        ended = (table, state.request) in self._ended
        if ended and not state.heal and state.stage is Stage.RUNNING:
            raise Violated(f"a request that has ended begins again: {event}")
        if state.heal and state.stage in (Stage.PAUSED, Stage.CANCELLED):
            raise Violated(f"a request governs what the reader began itself: {event}")
        self.states[table] = state
        if state.stage in (Stage.CANCELLED, Stage.DONE) and not state.heal:
            self._ended.add((table, state.request))
        if state.mode is Mode.PARKED:
            self._lose(table)
        elif state.stage is Stage.DONE:
            self._complete.add(table)

    def _compare(self, table: str, group: Group) -> None:
        state = self.states[table]
        if table not in self._truth:
            if state.mode is not Mode.LIVE or not state.stage.ended:
                raise Violated(f"{table} does not exist any more, but is {state} after {group}")
            self._complete.add(table)
        if state.mode is Mode.PARKED:
            return
        here, there = self.rows[table], self._truth.get(table, {})
        if table not in self._complete:
            if state.mode is Mode.LIVE and table not in self._new:
                raise Violated(f"incomplete, but neither parked nor being filled: {table} after {group}")
            last = state.last if table in KEYED and not state.stage.ended else -1
            here, there = _up_to(last, here), _up_to(last, there)
        if here != there:
            raise Violated(f"{table} is {here} instead of {there} after {group}")


def _up_to(last: int, rows: Rows) -> Rows:
    return {key: value for key, value in rows.items() if key <= last}

"""Transactions that backfills insert into the stream: rows of a table or a TRUNCATE, each with the new state."""

import time
from collections.abc import AsyncIterator, Iterable

import msgspec
from msgspec.structs import replace

from databus_binlog.row_batch import RowBatch
from databus_changes.snapshot.chunks import Chunk
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_core.events import Event, SnapshotEvent, SnapshotTruncate, StateRecord, Table
from databus_core.table_states import Backfill, BackfillState
from databus_reader.backfill.states import BackfillStates
from databus_reader.backfill.window import Definition, WholeTable
from databus_reader.parking import Parking

_NO_ROWS = RowBatch(msgspec.msgpack.encode([]), 0, 0)


class Insertions:
    """Makes the events of one transaction, to be inserted at the current boundary."""

    def __init__(self, translator: Translator, tracker: TableTracker, states: BackfillStates, parking: Parking) -> None:
        self._parking = parking
        self._translator = translator
        self._tracker = tracker
        self._states = states
        #: ordinal of the next row in the transaction
        self._row = 0

    def records(self, records: Iterable[StateRecord]) -> list[Event]:
        """Insert new states."""
        return [self._begin(), *records, self._translator.own.commit()]

    def refusal(self, backfill: Backfill) -> str:
        """Return why a backfill must not begin; empty if it may."""
        if not self._parking.captures(backfill.name):
            return "the table is not captured any more: check source.include and source.exclude"
        if self._parking.leaves_out(backfill.name) and (backfill.where or backfill.output):
            return "the table is in doubt: request it with clean, for all rows and all outputs"
        return self._parking.whole_loads.refusal(backfill)

    def ended(self, backfill: Backfill, state: BackfillState, error: str = "") -> list[Event]:
        """Insert that a backfill was cancelled or has failed.

        A table that it has emptied is parked. So is one that it was to load after a reset of the pipeline: changes
        before the position are missing, and only the load would have brought their rows.
        """
        emptied = self._states.progress(backfill).has_emptied and not backfill.output
        missing = backfill.cause == "snapshot" and backfill.clean and self._parking.captures(backfill.name)
        records: list[Event] = [*self._states.end(backfill, state, error)]
        place = self._translator.own.place
        if place and (emptied or missing):
            records += self._parking.park_incomplete(backfill, place, emptied=emptied)
        return [self._begin(), *records, self._translator.own.commit()]

    def definition(self, backfill: Backfill, definition: Definition) -> list[Event]:
        """Insert that a backfill will read a table by this definition. If wanted, empty the table first.

        From now on, consumers get all changes of the table. Its first chunk is read in a window that begins here.
        """
        key = definition.key.signature if definition.key else ()
        progress = self._states.progress(backfill)
        events: list[Event] = [self._begin()]
        if progress.state == "waiting":
            progress = replace(progress, estimate=definition.rows, started_us=time.time_ns() // 1000)
            if self._empties(backfill) and definition.key:
                events += self._empty(definition.table, backfill)
                progress = replace(progress, has_emptied=True)
        if progress.key != key:
            progress = replace(progress, key=key, last_key=None)
        record = self._states.change(backfill, replace(progress, state="running"))
        return [*events, record, self._translator.own.commit()]

    def chunk(self, backfill: Backfill, chunk: Chunk, batches: Iterable[RowBatch]) -> list[Event]:
        """Insert the batches, which are those rows of a chunk that have not changed since."""
        progress = self._states.progress(backfill)
        is_first = progress.last_key is None
        found = list(batches) or ([_NO_ROWS] if is_first or chunk.is_last else [])
        events: list[Event] = [self._begin()]
        table = self._announced(chunk.table, events)
        for number, batch in enumerate(found, 1):
            last = chunk.is_last and number == len(found)
            events.append(self._rows(table, backfill, batch, first=is_first and number == 1, last=last))
        progress = replace(progress, last_key=chunk.last_key or progress.last_key, rows=progress.rows + chunk.count)
        records: list[Event] = [self._states.change(backfill, progress)]
        if chunk.is_last:
            records += self._done(backfill)
        return [*events, *records, self._translator.own.commit()]

    async def whole(self, backfill: Backfill, whole: WholeTable) -> AsyncIterator[list[Event]]:
        """Insert all rows of a table, in parts of one transaction.

        The table is emptied first, unless only some rows are loaded: without a key, consumers cannot know which of the
        rows they have already. Raises GenerationLost if it takes too long for one transaction.
        """
        events: list[Event] = [self._begin()]
        if not backfill.where:
            events += self._empty(whole.table, backfill)
        table = self._announced(whole.table, events)
        yield events
        held, is_first, count = _NO_ROWS, True, 0
        async for batch in self._parking.whole_loads.within_time(backfill, whole.batches):
            if held.count:
                yield [self._rows(table, backfill, held, first=is_first, last=False)]
                is_first = False
            held = batch
            count += batch.count
        last = self._rows(table, backfill, held, first=is_first, last=True)
        record = self._states.change(backfill, replace(self._states.progress(backfill), rows=count))
        yield [last, record, *self._done(backfill), self._translator.own.commit()]

    def _begin(self) -> Event:
        self._row = 0
        return self._translator.own.begin()

    def _empty(self, listed: Table, backfill: Backfill) -> list[Event]:
        """Empty a table for consumers. If that concerns all of them, its changes are published from now on."""
        events: list[Event] = []
        table = self._announced(listed, events)
        filling = [] if backfill.output else self._parking.fill(backfill.name, backfill.id)
        return [*events, SnapshotTruncate(table.fingerprint, backfill.output), *filling]

    def _empties(self, backfill: Backfill) -> bool:
        """Return whether a backfill empties the table: it was requested, the table is parked, or it starts over."""
        starts_over = self._states.progress(backfill).starts_over and not backfill.where
        return backfill.clean or starts_over or self._parking.leaves_out(backfill.name)

    def _done(self, backfill: Backfill) -> list[Event]:
        """End a backfill, and the doubt about a table that it has emptied and loaded."""
        records: list[Event] = [*self._states.end(backfill, "done")]
        doubt = self._states.doubts.get(backfill.name)
        healed = doubt is not None and (doubt.state, doubt.backfill) == ("filling", backfill.id)
        return records + self._parking.end(backfill.name) if healed else records

    def _announced(self, listed: Table, events: list[Event]) -> Table:
        """Return a table as the binlog's rows refer to it, and add its definition to the events if it is missing."""
        table = self._tracker.adopt(listed)
        self._translator.definitions.emit(table, events)
        return table

    def _rows(self, table: Table, backfill: Backfill, batch: RowBatch, *, first: bool, last: bool) -> SnapshotEvent:
        initial = backfill.cause == "snapshot"
        row, self._row = self._row, self._row + batch.count
        return SnapshotEvent(
            table=table.fingerprint,
            row=row,
            rows=msgspec.Raw(batch.rows),
            time_us=time.time_ns() // 1000,
            output=backfill.output,
            initial=initial,
            first_of_table=first,
            last_of_table=last,
            first=initial and first and self._states.is_first_of_snapshot(),
            last=initial and last and self._states.is_last_of_snapshot(backfill),
        )

"""The states of the backfills of a generation, and the records by which they change."""

import time
from collections.abc import Mapping

from msgspec.structs import replace

from databus_changes.place import Place
from databus_core.events import StateRecord
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.metrics import reader as metrics
from databus_core.skips import Skip
from databus_core.table_states import (
    Backfill,
    BackfillProgress,
    BackfillState,
    TableDoubt,
    TableStates,
    backfill_key,
    doubt_key,
    encode,
    new_backfills,
    progress_key,
)

log = get_logger(__name__)

#: how many ended backfills are kept, so that clients can see how they ended
_KEPT = 100


class BackfillStates:
    """What the reader knows about backfills and doubts: as in Kafka, with the records that it has sent since."""

    def __init__(self, states: TableStates) -> None:
        self._states = states

    def request(self, key: bytes, value: bytes | None) -> None:
        """Take over a record that a client has written. Raises TableStatesCorrupt."""
        self._states.apply(key, value)

    def unfinished(self) -> list[Backfill]:
        """List the backfills that have not ended, the oldest request first."""
        return self._states.unfinished()

    def progress(self, backfill: Backfill) -> BackfillProgress:
        """Return how far a backfill has come."""
        return self._states.progress_of(backfill.id)

    def is_cancelled(self, backfill: Backfill) -> bool:
        """Return whether a client has cancelled a backfill, or too late the one that it replaces."""
        return self._states.is_cancelled(backfill)

    def change(self, backfill: Backfill, progress: BackfillProgress) -> StateRecord:
        """Set how far a backfill has come. Return the record to write with what was reached."""
        progress = replace(progress, updated_us=_now())
        loaded = progress.rows - self.progress(backfill).rows
        metrics.BACKFILL_ROWS.labels(backfill.full_name).inc(max(0, loaded))
        self._states.progress[backfill.id] = progress
        return StateRecord(progress_key(backfill.id), encode(progress))

    def end(self, backfill: Backfill, state: BackfillState, error: str = "") -> list[StateRecord]:
        """End a backfill. Return the records to write, among them those that delete the oldest ended ones."""
        records = [self.change(backfill, replace(self.progress(backfill), state=state, error=error))]
        metrics.BACKFILLS_ENDED.labels(state).inc()
        if state != "done" and backfill.cause == "snapshot" and self.is_last_of_snapshot(backfill):
            command = f"databus backfill start {backfill.full_name}{' --clean' if backfill.clean else ''}"
            text = (
                f"the snapshot has ended without {backfill.full_name}, so no record has the marker `last` of Debezium: "
                f"do not wait for it; to load the table, run `{command}`"
            )
            log.warning(LogEvent.SNAPSHOT_INCOMPLETE, text, table=backfill.full_name)
        ended = sorted(key for key, progress in self._states.progress.items() if progress.is_final)
        for key in ended[:-_KEPT]:
            del self._states.progress[key]
            self._states.backfills.pop(key, None)
            records += StateRecord(backfill_key(key), None), StateRecord(progress_key(key), None)
        return records

    def give_up(self, table: tuple[str, str], why: str) -> list[StateRecord]:
        """End the unfinished backfills of a table. Return the records to write."""
        unfinished = [each for each in self.unfinished() if each.name == table]
        return [record for backfill in unfinished for record in self.end(backfill, "failed", why)]

    def start_over(self, backfill: Backfill) -> list[StateRecord]:
        """Let a backfill that has begun start over. Return the records to write."""
        progress = self.progress(backfill)
        return [self.change(backfill, _from_start(progress))] if _has_begun(progress) else []

    def follow(self, backfill: Backfill, table: tuple[str, str], *, replaces: bool) -> tuple[str, list[StateRecord]]:
        """Request a backfill again for a table that was renamed. Return its id, and the records to write.

        `replaces`: whether the backfill under the old name ends.
        """
        [new] = new_backfills([table])
        new = replace(backfill, id=new.id, schema=new.schema, table=new.table, requested_us=new.requested_us)
        new = replace(new, replaces=backfill.id if replaces else "")
        self._states.backfills[new.id] = new
        records = [StateRecord(backfill_key(new.id), encode(new))]
        progress = self.progress(backfill)
        return new.id, [*records, self.change(new, _from_start(progress))] if _has_begun(progress) else records

    def load_again(self, table: tuple[str, str], begin_us: int) -> tuple[str, list[StateRecord]]:
        """Request a backfill that ends the doubt about a table. Return its id, and the records to write."""
        [heal] = new_backfills([table], clean=True, cause="heal", begin_us=begin_us)
        self._states.backfills[heal.id] = heal
        return heal.id, [StateRecord(backfill_key(heal.id), encode(heal))]

    def will_be_loaded(self, table: tuple[str, str]) -> bool:
        """Return whether a load of a whole table, with TRUNCATE, is requested and has not begun."""
        return any(
            each.name == table
            and each.clean
            and not each.output
            and not self.is_cancelled(each)
            and self.progress(each).state == "waiting"
            for each in self.unfinished()
        )

    @property
    def doubts(self) -> Mapping[tuple[str, str], TableDoubt]:
        """The tables in doubt."""
        return self._states.doubts

    @property
    def skips(self) -> list[Skip]:
        """The requests to skip a transaction."""
        return [*self._states.skips.values()]

    def skip_of(self, gtid: str, server: str, place: Place) -> Skip | None:
        """Return the request to skip the transaction at a place of a server, if there is one."""
        if not self._states.skips:  # nearly always
            return None
        return next((each for each in self.skips if each.is_of(gtid, server, place)), None)

    def end_skip(self, skip: Skip) -> StateRecord:
        """Delete a request to skip a transaction. Return the record to write after the transaction."""
        self._states.apply(skip.key, None)
        return StateRecord(skip.key, None)

    def set_doubt(self, table: tuple[str, str], doubt: TableDoubt | None) -> StateRecord:
        """Set or end the doubt about a table. Return the record to write."""
        record = StateRecord(doubt_key(*table), encode(doubt) if doubt else None)
        self._states.apply(record.key, record.value)
        return record

    def show(self) -> None:
        """Show in the metrics how many backfills are in each state that is not final."""
        states = [self.progress(each).state for each in self.unfinished()]
        for state in ("waiting", "running", "paused"):
            metrics.BACKFILLS.labels(state).set(states.count(state))

    def is_first_of_snapshot(self) -> bool:
        """Return whether no row of the snapshot with which the pipeline starts was loaded yet."""
        return not any(self.progress(each).rows for each in self._snapshot())

    def is_last_of_snapshot(self, backfill: Backfill) -> bool:
        """Return whether all other tables of the snapshot with which the pipeline starts are loaded."""
        return all(self.progress(each).is_final for each in self._snapshot() if each.id != backfill.id)

    def _snapshot(self) -> list[Backfill]:
        return [each for each in self._states.backfills.values() if each.cause == "snapshot"]


def _from_start(progress: BackfillProgress) -> BackfillProgress:
    """Return the progress of a backfill that starts over; the rows that it has published may be those of others."""
    return BackfillProgress(state="waiting", has_emptied=progress.has_emptied, starts_over=True)


def _has_begun(progress: BackfillProgress) -> bool:
    """Return whether a backfill has begun; it may wait again, to start over."""
    return progress.state != "waiting" or progress.has_emptied or progress.starts_over


def _now() -> int:
    return time.time_ns() // 1000

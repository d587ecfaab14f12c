"""What DDL does to backfills and doubts: they follow a table that is renamed, and start over if keys mean other rows.

If another table gets the old name in the same statement, they stay with the name, too: consumers may have rows under
it that are not those of the new table.
"""

from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from databus_changes.tables import Rename, TableName, moves
from databus_core.events import StateRecord, full_name
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.table_states import Backfill
from databus_reader.backfill.states import BackfillStates

log = get_logger(__name__)


def follow_renames(
    states: BackfillStates, renames: Iterable[Rename], captures: Callable[[str, str], bool]
) -> list[StateRecord]:
    """Apply the renames of one statement. Return the records to write."""
    moved = moves(renames)
    taken = set(moved.values())
    records: list[StateRecord] = []
    followers: dict[str, str] = {}
    for backfill in states.unfinished():
        if new_name := moved.get(backfill.name):
            why = f"the table was renamed to {full_name(*new_name)}"
            if captures(*new_name):
                ends = backfill.name not in taken
                followers[backfill.id], found = states.follow(backfill, new_name, replaces=ends)
                why += f", which backfill {followers[backfill.id]} loads"
                records += found
            else:
                why += ", which is not captured"
            if backfill.name not in taken:
                records += _fail(states, backfill, why)
        if backfill.name in taken:
            records += _start_over(states, backfill, "another table was renamed to this name")
    doubts = dict(states.doubts)
    for old in sorted(moved.keys() & doubts.keys()):
        new, doubt = moved[old], doubts[old]
        text = f"{full_name(*old)}, which is in doubt, was renamed to {full_name(*new)}"
        if captures(*new):
            heal = followers.get(doubt.backfill, "")
            log.error(LogEvent.TABLE_PARKED, f"{full_name(*new)} is parked: {text}", table=full_name(*new))
            records.append(states.set_doubt(new, replace(doubt, state="parked", backfill=heal, reported=False)))
        if old not in taken:
            log.info(LogEvent.TABLE_HEALED, text, table=full_name(*old))
            records.append(states.set_doubt(old, None))
    return records


def start_over(states: BackfillStates, table: TableName, columns: Collection[str]) -> list[StateRecord]:
    """Start backfills over whose key has one of these columns, in lower case. Return the records to write."""
    return [
        record
        for backfill in states.unfinished()
        if backfill.name == table
        and any(part.lower().startswith(f"{name} ") for part in states.progress(backfill).key for name in columns)
        for record in _start_over(states, backfill, "a column of its key was dropped or renamed")
    ]


def _start_over(states: BackfillStates, backfill: Backfill, why: str) -> list[StateRecord]:
    """Start a backfill over if it has begun."""
    records = states.start_over(backfill)
    if records:
        text = f"{backfill.full_name} is loaded again from the first row: {why}"
        log.warning(LogEvent.BACKFILL_STARTS_OVER, text, table=backfill.full_name)
    return records


def _fail(states: BackfillStates, backfill: Backfill, why: str) -> list[StateRecord]:
    log.warning(LogEvent.BACKFILL_FAILED, f"{backfill.full_name} is not loaded: {why}", table=backfill.full_name)
    return states.end(backfill, "failed", why)

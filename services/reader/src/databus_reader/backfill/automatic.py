"""Backfills that nobody has to request: of all tables when a pipeline starts, and of tables that are captured later."""

from databus_binlog.session import Session
from databus_changes.catalog import read_tables
from databus_core.events import Event, StateRecord
from databus_core.progress import Progress
from databus_core.settings import Settings, StartSnapshot
from databus_core.settings.rules import first_matches
from databus_core.table_filter import TableFilter
from databus_core.table_states import CAPTURED_KEY, Cause, TableStates, backfill_key, encode, new_backfills


async def add_backfills(settings: Settings, session: Session, states: TableStates, progress: Progress) -> list[Event]:
    """Add the backfills that the settings ask for to the states; return the records to write.

    `session` is with the server that is read.
    """
    is_new = progress.position is None
    snapshot = progress.snapshot or (progress.start is None and settings.reader.start == StartSnapshot())
    source = settings.source
    captured = (source.include, source.exclude)
    before, states.captured = states.captured, captured
    if before == captured:
        return []
    records: list[Event] = [StateRecord(CAPTURED_KEY, encode(captured))]
    cause: Cause
    if is_new and snapshot:
        known, cause = TableFilter([]), "snapshot"
    elif not is_new and before is not None and settings.backfill.new_tables:
        known, cause = TableFilter(*before), "new_table"
    else:
        return records
    names = [(table.schema, table.name) for table in await read_tables(session)]
    rules = settings.publisher.rules
    wanted = [
        name for name in names if source.captures(*name) and not known.matches(*name) and first_matches(rules, *name)
    ]
    # Unless the pipeline has just begun, consumers may have rows that were deleted since: those from before a reset, or
    # of a table that was captured earlier.
    clean = not is_new or progress.start is not None or progress.transaction > 0
    for backfill in new_backfills(wanted, cause=cause, clean=clean):
        states.backfills[backfill.id] = backfill
        records.append(StateRecord(backfill_key(backfill.id), encode(backfill)))
    return records

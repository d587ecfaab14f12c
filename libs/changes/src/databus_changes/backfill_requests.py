"""Request backfills, and pause, resume or cancel them: what the command line and the REST API do.

A request is checked completely, and all its faults are reported together, before anything is written. If two clients
request the same table at the same moment, it is loaded twice, one after the other.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from databus_changes.backfill_checks import source_faults
from databus_changes.backfill_tables import BackfillRequest, conflicts, option_faults, select_tables
from databus_changes.catalog import read_tables
from databus_core import kafka_client, names
from databus_core.errors import BackfillConflict, BackfillRefused, PipelineNotStarted, UnknownBackfill
from databus_core.kafka_progress import read_progress
from databus_core.kafka_table_states import read_states, write_backfills
from databus_core.kafka_topics import partition_counts
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.settings import Settings
from databus_core.table_filter import TableFilter
from databus_core.table_states import Backfill, TableStates, Wanted, new_backfills


async def request(settings: Settings, wanted: BackfillRequest) -> list[Backfill]:
    """Request a backfill of each table that matches the patterns; they are durable when this returns.

    Raises BackfillRefused, or BackfillConflict if nothing but the state of the tables is wrong; PipelineNotStarted; and
    the errors of `read_states`, `read_progress`, `connect_pipeline_host` and `write_backfills`.
    """
    await _require_topic(settings)
    states, _ = await read_states(settings)
    async with connect_pipeline_host(settings.source, await read_progress(settings)) as (_, session):
        seen = await read_tables(session)
        # Many patterns and tables would keep the event loop busy for seconds.
        found = await asyncio.to_thread(select_tables, seen, settings, wanted)
        faults = option_faults(settings, wanted) + found.faults
        faults += await source_faults(session, settings, found, wanted)
    taken = conflicts(states, sorted(found.tables), wanted)
    if faults or taken:
        raise (BackfillRefused if faults else BackfillConflict)("\n".join(faults + taken))
    backfills = new_backfills(
        sorted(found.tables),
        where=wanted.where,
        clean=wanted.clean,
        output=wanted.output,
        any_size=wanted.any_size,
    )
    await write_backfills(settings, backfills)
    return backfills


async def change(
    settings: Settings, wanted: Wanted, *, ids: Iterable[str] = (), tables: Iterable[str] = ()
) -> list[Backfill]:
    """Make unfinished backfills run, pause or be cancelled; that is durable when this returns. Returns all of them.

    tables: `schema.table` patterns. Raises UnknownBackfill or BackfillConflict, and the errors of `read_states` and
    `write_backfills`.
    """
    states, _ = await read_states(settings)
    chosen = _chosen(states, wanted, ids, tables)
    changed = [msgspec.structs.replace(each, wanted=wanted) for each in chosen]
    await write_backfills(settings, [each for each in changed if each != states.backfills[each.id]])
    return changed


async def _require_topic(settings: Settings) -> None:
    """Raise PipelineNotStarted if the publisher has not created the topic yet: Kafka might create another kind."""
    async with kafka_client.admin(settings.kafka) as admin:
        if names.table_states_topic(settings.name) not in await partition_counts(admin):
            text = (
                f"pipeline {settings.name} has not begun: start reader and publisher, then request the backfill again"
            )
            raise PipelineNotStarted(text)


def _chosen(states: TableStates, wanted: Wanted, ids: Iterable[str], tables: Iterable[str]) -> list[Backfill]:
    """Find the unfinished backfills to change, the oldest first. Raises UnknownBackfill or BackfillConflict."""
    unfinished = {each.id: each for each in states.unfinished()}
    chosen: dict[str, Backfill] = {}
    unknown, refused = [], []
    for name in ids:
        if name in unfinished:
            chosen[name] = unfinished[name]
        elif name in states.backfills:
            refused.append(f"backfill {name} of {states.backfills[name].full_name} has ended: {states.state(name)}")
        else:
            unknown.append(f"there is no backfill {name}")
    for pattern in tables:
        selected = TableFilter([pattern])
        matching = {key: each for key, each in unfinished.items() if selected.matches(*each.name)}
        chosen |= matching
        if not matching:
            refused.append(f"no backfill of {pattern} is waiting, running or paused")
    if wanted != "cancel":
        ending = (each for each in chosen.values() if each.wanted == "cancel")
        refused += [f"backfill {each.id} of {each.full_name} is being cancelled" for each in ending]
    if unknown or refused:
        raise (BackfillConflict if refused else UnknownBackfill)("\n".join(unknown + refused))
    return [each for _, each in sorted(chosen.items())]

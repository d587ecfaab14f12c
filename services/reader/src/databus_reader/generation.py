"""One generation (see `databus_core.pipe`): the binlog from a position on, decoded, translated and appended."""

import time

from databus_changes.cascades import warn_of_cascades
from databus_changes.catalog import read_table
from databus_changes.ddl.dialect import dialect_of
from databus_changes.fast_path import FastPath
from databus_changes.prepared import PreparedTransactions
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_core.errors import FatalError, GenerationLost, SourceUnavailable
from databus_core.events import End, Start, Table, first_names, full_name
from databus_core.kafka_table_states import read_states
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger, position_fields
from databus_core.pipe import ReaderEnd
from databus_core.progress import Progress
from databus_core.pure import is_pure
from databus_core.readiness import names_columns
from databus_core.runtime import Health
from databus_core.settings import Settings, Source
from databus_core.source_connection import connect_source
from databus_core.source_log import read_clock
from databus_reader.backfill.automatic import add_backfills
from databus_reader.backfill.backfills import Backfills
from databus_reader.backfill.insertions import Insertions
from databus_reader.backfill.requests import taking_requests
from databus_reader.backfill.states import BackfillStates
from databus_reader.baseline import Baseline
from databus_reader.binlog_stream import open_binlog
from databus_reader.cascade_loads import CascadeLoads
from databus_reader.earlier_transactions import EarlierTransactions
from databus_reader.entries import EntryWriter
from databus_reader.forwarding import Forwarding
from databus_reader.headroom import watching_headroom
from databus_reader.new_start import NewStart
from databus_reader.parking import Parking
from databus_reader.source.hosts import SourceConnection
from databus_reader.source.switching import Switching
from databus_reader.tracing import make_entries

log = get_logger(__name__)


async def read_generation(
    settings: Settings,
    pipe: ReaderEnd,
    connection: SourceConnection,
    baseline: Baseline,
    parking: Parking,
    new_start: NewStart,
    progress: Progress,
    switching: Switching,
    health: Health,
    *,
    until_idle: bool,
) -> None:
    """Send the binlog from the connection's position on; with `until_idle`, up to the binlog's end.

    Raises GenerationLost, SourceUnavailable if the host closes the connection, and UnknownTable; with `until_idle`,
    FatalError if tables are in doubt at the end.
    """
    session, server, start = connection.session, connection.session.server, connection.position
    if not names_columns(server):
        advice = "the schema history names them instead; set binlog_row_metadata=FULL on the server"
        log.warning(LogEvent.COLUMN_NAMES_MISSING, f"the binlog does not name columns: {advice}")
    heal = settings.doubt.cascades == "heal"
    await warn_of_cascades(session, settings.source, connection.host, heal=heal)
    async with make_entries(pipe, settings.reader.backlog_limit, health) as entries:
        history = await baseline.tables(connection, progress, entries, health)
        found, read_to = await read_states(settings)
        await entries.write(await add_backfills(settings, session, found, progress))
        states = BackfillStates(found)
        parking.begin_generation(connection.host, server.identity, states)
        await entries.write([*parking.excluded(), *parking.take_over()])
        await entries.write(await new_start.park(session, start))
        time_us = progress.time_us or time.time_ns() // 1000
        asked = time.time()  # before: if the answer takes long, the clock counts as ahead, and data as older
        ahead_us = round((await read_clock(session) - asked) * 1e6)
        log_end = None if connection.in_order else await session.current_position()
        await entries.write(
            [Start(start, server.identity, server.flavor, time_us, connection.in_order, anew=new_start.planned)]
        )
        await entries.flush()
        if progress.position is None:
            # Until the first position is committed, a restart resolves `latest` anew, so the reader is not ready.
            await entries.wait_until_published()
        await switching.report_host(connection.host)
        log.info(LogEvent.READING, f"reading {connection.host}", **position_fields(start))
        tracker = TableTracker(
            history,
            await dialect_of(session),
            lookup=lambda schema, name: _lookup(settings.source, connection.host, schema, name),
            tracks=settings.source.captures_some,
        )
        prepared = PreparedTransactions(progress.prepared, EarlierTransactions(settings, connection, tracker, health))
        translator = Translator(
            settings.source,
            server.flavor,
            tracker,
            progress,
            start=start,
            in_order=connection.in_order,
            gtids=connection.gtids,
            partial=settings.publisher.publish_partial,
            parking=parking,
            prepared=prepared,
        )
        translator.reached.time_us = time_us
        insertions = Insertions(translator, tracker, states, parking)
        tables = translator.definitions.emitted
        backfills = Backfills(
            settings, pipe, connection.host, server.identity, states, insertions, tables, parking.reports
        )
        parking.follow(backfills.look)
        cascades = CascadeLoads(settings, connection.host, states, tables, parking.pauses, backfills.look)
        await cascades.begin(session)
        path = FastPath(translator, server.flavor, tracker, gtids=connection.gtids, needed=cascades.concerns)
        # Backfills need a stream that goes on behind the log's end.
        follow = not until_idle or backfills.unfinished
        stream = await open_binlog(
            settings,
            session,
            connection.binlog_start,
            tracker,
            server_id=settings.server_id,
            follow=follow,
        )
        health.up(host=connection.host)
        async with (
            watching_headroom(settings, connection.host, translator),
            backfills,
            taking_requests(settings, read_to, backfills),
        ):
            forwarding = Forwarding(
                stream,
                translator,
                None if is_pure() else path,
                backfills,
                cascades,
                entries,
                switching,
                health,
                ahead_us,
                log_end,
            )
            await forwarding.run(until_idle=until_idle, follow=follow)
            if until_idle and backfills.unfinished:
                await entries.flush()
                await entries.wait_until_published()
                raise GenerationLost("backfills have been added: the next generation waits for them")
        if until_idle:
            await _send_end(translator, entries)
            await _require_no_doubt(settings)
            return
    raise SourceUnavailable(f"database {connection.host}: it closed the connection", connection.host)


async def _send_end(translator: Translator, entries: EntryWriter) -> None:
    """Send `End`, and wait until the publisher has committed everything. Raises GenerationLost."""
    heartbeat = translator.reached.take_heartbeat()
    await entries.write([heartbeat, End()] if heartbeat else [End()])
    await entries.flush()
    await entries.wait_until_published()


async def _require_no_doubt(settings: Settings) -> None:
    """Raise FatalError if tables are in doubt, also if the publisher has just reported them."""
    states, _ = await read_states(settings)
    if tables := [full_name(*table) for table in sorted(states.doubts)]:
        text = f"everything in the binlog is published, except of tables in doubt: {first_names(tables)}"
        raise FatalError(f"{text} (see `databus status`)")


async def _lookup(source: Source, host: str, schema: str, name: str) -> Table | None:
    async with connect_source(source, host) as session:
        return await read_table(session, schema, name)

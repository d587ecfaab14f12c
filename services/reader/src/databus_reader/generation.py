"""One generation (see `databus.pipe`): the binlog from a position on, decoded, translated and appended to the pipe."""

import time
from collections.abc import Sequence

from databus import metrics
from databus.errors import SourceUnavailable
from databus.events import End, Start, Table
from databus.log_events import LogEvent
from databus.logs import get_logger, position_fields
from databus.pipe import ReaderEnd
from databus.progress import Progress
from databus.readiness import names_columns
from databus.runtime import Health
from databus.settings import Settings, Source
from databus.source_connection import connect_source
from databus_binlog import Event as BinlogEvent
from databus_binlog import events as binlog
from databus_binlog.session import Stream
from databus_changes.catalog import read_table
from databus_changes.ddl.dialect import dialect_of
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_reader.baseline import Baseline
from databus_reader.entries import EntryWriter
from databus_reader.source.hosts import SourceConnection
from databus_reader.source.switching import Switching

log = get_logger(__name__)

#: after this time without events to send, a heartbeat is sent if the position has changed
_POSITION_SECONDS = 1.0
_HEARTBEAT_SECONDS = 1.0


async def read_generation(
    settings: Settings,
    pipe: ReaderEnd,
    connection: SourceConnection,
    baseline: Baseline,
    progress: Progress,
    switching: Switching,
    health: Health,
    *,
    until_idle: bool,
) -> None:
    """Send the binlog from the connection's position on; with `until_idle`, up to the binlog's end.

    Raises GenerationLost, SourceUnavailable if the host closes the connection, and UnknownTable.
    """
    session, server, start = connection.session, connection.session.server, connection.position
    if not names_columns(server):
        advice = "the schema history names them instead; set binlog_row_metadata=FULL on the server"
        log.warning(LogEvent.COLUMN_NAMES_MISSING, f"the binlog does not name columns: {advice}")
    async with EntryWriter(pipe, settings.reader.backlog_limit, health) as entries:
        history = await baseline.tables(connection, progress, entries, health)
        time_us = progress.time_us or time.time_ns() // 1000
        await entries.write([Start(start, server.identity, server.flavor, time_us, connection.in_order)])
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
        translator = Translator(settings.source, server.flavor, tracker, progress, gtids=connection.gtids)
        translator.time_us = time_us
        stream = await session.dump(
            connection.dump_start,
            server_id=settings.server_id,
            heartbeat=_HEARTBEAT_SECONDS,
            wanted=settings.source.captures,
            describe=tracker.describe,
            statements=settings.publisher.needs_statements,
            row_limit=settings.reader.row_limit,
            engine=settings.reader.engine,
            follow=not until_idle,
        )
        health.up(host=connection.host)
        await _forward(stream, translator, entries, pipe, switching, health)
        if until_idle:
            await _send_end(translator, entries)
            return
    raise SourceUnavailable(f"database {connection.host}: it closed the connection", connection.host)


async def _forward(
    stream: Stream,
    translator: Translator,
    entries: EntryWriter,
    pipe: ReaderEnd,
    switching: Switching,
    health: Health,
) -> None:
    last_sent = time.monotonic()
    async for decoded in stream:
        health.beat()
        chunk = list(decoded)
        events = await translator.translate(chunk, decoded.tables)
        if time.monotonic() - last_sent >= _POSITION_SECONDS and (heartbeat := translator.take_heartbeat()):
            events.append(heartbeat)
        if events:
            last_sent = time.monotonic()
            await entries.write(events)
        if stream.drained:
            await entries.flush()
        if isinstance(chunk[-1], binlog.Heartbeat):
            # Raises GenerationLost if the generation has ended. While the source is idle, no append would notice it.
            metrics.BACKLOG_BYTES.set(await pipe.backlog())
        _measure(chunk, translator)
        await switching.check()


async def _send_end(translator: Translator, entries: EntryWriter) -> None:
    """Send `End`, and wait until the publisher has committed everything. Raises GenerationLost."""
    heartbeat = translator.take_heartbeat()
    await entries.write([heartbeat, End()] if heartbeat else [End()])
    await entries.flush()
    await entries.wait_until_published()


def _measure(chunk: Sequence[BinlogEvent], translator: Translator) -> None:
    metrics.EVENTS_READ.inc(len(chunk))
    metrics.ROWS_READ.inc(translator.rows)
    metrics.TRANSACTIONS_READ.inc(translator.transactions)
    translator.rows = translator.transactions = 0
    metrics.BINLOG_OFFSET.set(chunk[-1].end)
    if chunk[-1].time:
        metrics.SOURCE_LAG.set(max(0.0, time.time() - chunk[-1].time))


async def _lookup(source: Source, host: str, schema: str, name: str) -> Table | None:
    async with connect_source(source, host) as session:
        return await read_table(session, schema, name)

"""The reader's main path: claim → connect → decode → append."""

import asyncio
import time
from collections.abc import Sequence

from databus import metrics
from databus.election import leading, open_lease
from databus.errors import GenerationLost, SourceRefused, SourceUnavailable
from databus.events import End, Start, Table
from databus.kafka_history import read_history
from databus.log_events import LogEvent
from databus.logs import bound, get_logger, position_fields
from databus.pipe import ReaderEnd
from databus.progress import Progress
from databus.readiness import names_columns
from databus.redis_connection import connect_redis
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
from databus_reader.baseline import start_history
from databus_reader.entries import EntryWriter
from databus_reader.source.engine import require_engine, require_readable
from databus_reader.source.hosts import Hosts, SourceConnection
from databus_reader.source.switching import Switching, start_switching

log = get_logger(__name__)

_CLAIM_SECONDS = 0.2
#: a publisher that is running opens a generation within this time
_OPEN_SECONDS = 2.0
#: after this time without captured changes, the position is sent on its own
_POSITION_SECONDS = 1.0
_HEARTBEAT_SECONDS = 1.0


async def run(settings: Settings, health: Health, *, until_idle: bool = False) -> None:
    """Read the binlog as the active reader. After any error a new generation starts from the progress.

    With `until_idle`, return when the publisher has taken everything that is in the binlog now.
    """
    require_engine(settings.reader.engine)
    async with (
        connect_redis(settings.redis) as redis,
        leading(settings.reader.election, settings.name, "reader", redis, health),
    ):
        pipe = ReaderEnd(redis, settings.name)
        hosts = Hosts(settings)
        switching = await start_switching(redis, settings.name, hosts)
        await pipe.retire()
        while True:
            progress = await _claim(pipe, health)
            with bound(generation=pipe.generation):
                if await _serve(settings, pipe, hosts, progress, switching, health, until_idle=until_idle):
                    return
            await pipe.give_up()


async def _serve(
    settings: Settings,
    pipe: ReaderEnd,
    hosts: Hosts,
    progress: Progress,
    switching: Switching,
    health: Health,
    *,
    until_idle: bool,
) -> bool:
    """Read in a claimed generation. Return whether everything was read; False if the generation or the host is lost."""
    try:
        async with hosts.connect(progress, health) as connection:
            with bound(host=connection.host):
                await switching.arrived(connection.host)
                await _read(settings, pipe, connection, progress, switching, health, until_idle=until_idle)
        return True
    except GenerationLost as lost:
        log.info(LogEvent.GENERATION_LOST, f"{lost}; waiting for the next generation")
    except asyncio.CancelledError:
        await pipe.give_up()  # otherwise the publisher waits for the rest of a transaction until another reader starts
        raise
    except SourceUnavailable as error:
        await hosts.leave(progress, error)
        health.down(str(error))
        health.outages.lost(error)
    except SourceRefused as error:
        await hosts.leave(progress, error)
        health.down(str(error))
        log.warning(LogEvent.HOST_REFUSED, f"{error}; trying another host")
    return False


async def _claim(pipe: ReaderEnd, health: Health) -> Progress:
    """Wait until the publisher has opened a generation, and claim it.

    A reader that lost its lease may have claimed a generation before it noticed. Nobody else ends that generation, so
    it is ended here.
    """
    waited = 0.0
    while (progress := await pipe.claim()) is None:
        if waited >= _OPEN_SECONDS:
            health.down("waiting for the publisher to open a generation")
            await pipe.retire()
        health.beat()
        waited += _CLAIM_SECONDS
        await asyncio.sleep(_CLAIM_SECONDS)
    return progress


async def _read(
    settings: Settings,
    pipe: ReaderEnd,
    connection: SourceConnection,
    progress: Progress,
    switching: Switching,
    health: Health,
    *,
    until_idle: bool,
) -> None:
    """Send the binlog from the connection's position on, until the generation is lost or until the binlog's end."""
    session, server, start = connection.session, connection.session.server, connection.position
    if not names_columns(server):
        advice = "the schema history names them instead; set binlog_row_metadata=FULL on the server"
        log.warning(LogEvent.COLUMN_NAMES_MISSING, f"the binlog does not name columns: {advice}")
    async with EntryWriter(pipe, settings.reader.backlog_limit, health) as entries:
        history = await start_history(connection, settings, progress, entries, health)
        time_us = progress.time_us or time.time_ns() // 1000
        await entries.write([Start(start, server.identity, server.flavor, time_us, connection.in_order)])
        await entries.flush()
        if progress.position is None:
            # Otherwise `latest` could be a later position after a crash, although the reader was already ready.
            await entries.published()
        log.info(LogEvent.READING, f"reading {connection.host}", **position_fields(start))
        tracker = TableTracker(
            history,
            await dialect_of(session),
            lookup=lambda schema, name: _lookup(settings.source, connection.host, schema, name),
            tracks=settings.source.captures_some,
        )
        translator = Translator(settings.source, server.flavor, tracker, progress, gtids=connection.gtids)
        stream = await session.dump(
            connection.dump_start,
            server_id=settings.server_id,
            heartbeat=_HEARTBEAT_SECONDS,
            wanted=settings.source.captures,
            describe=tracker.describe,
            row_limit=settings.reader.row_limit,
            engine=settings.reader.engine,
            follow=not until_idle,
        )
        health.up(host=connection.host)
        await _forward(stream, translator, entries, pipe, switching, health)
        if until_idle:
            await _end(translator, entries)
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
            # With nothing to append, the backlog is read to notice a lost generation on an idle source too.
            metrics.BACKLOG_BYTES.set(await pipe.backlog())
        _measure(chunk, translator)
        await switching.check()


async def _end(translator: Translator, entries: EntryWriter) -> None:
    """Send the end, and wait until the publisher has taken everything.

    If the generation is lost before that, the reader has to claim the next one.
    """
    heartbeat = translator.take_heartbeat()
    await entries.write([heartbeat, End()] if heartbeat else [End()])
    await entries.flush()
    await entries.published()


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


async def check(settings: Settings, _: Health) -> None:
    """Connect to Redis, Kafka and every host of the database; verify the schema history, settings and grants."""
    require_engine(settings.reader.engine)
    await read_history(settings)
    async with connect_redis(settings.redis) as redis:
        await ReaderEnd(redis, settings.name).probe()
        async with open_lease(settings.reader.election, settings.name, "reader", redis) as lease:
            await lease.holder()
    for host in settings.source.hosts:
        async with connect_source(settings.source, host) as session:
            await require_readable(session, settings, host)
            await session.register(settings.server_id)

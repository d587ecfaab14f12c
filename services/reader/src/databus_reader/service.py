"""The reader's main path: claim → connect → decode → append."""

import asyncio
import logging
import time
from collections.abc import Sequence

from databus import metrics
from databus.catalog import read_table
from databus.connections import connect_redis, connect_source
from databus.election import leading, open_lease
from databus.errors import GenerationLost, SourceUnavailable
from databus.events import Start, Table
from databus.pipe import ReaderEnd
from databus.progress import Progress
from databus.readiness import require_ready
from databus.runtime import Health
from databus.settings import Settings, Source
from databus_binlog import Event as BinlogEvent
from databus_binlog import Position, Session, Stream
from databus_binlog import events as binlog
from databus_reader.entries import EntryWriter
from databus_reader.schemas import Schemas
from databus_reader.translate import Translator

log = logging.getLogger("databus.reader")

_CLAIM_SECONDS = 0.2
#: a publisher that lives opens a generation sooner
_LONG_SECONDS = 2.0
#: a position without captured changes is passed on this often
_POSITION_SECONDS = 1.0
_HEARTBEAT_SECONDS = 1.0


async def run(settings: Settings, health: Health) -> None:
    """Read the binlog for ever, as the active reader. Whatever breaks, a new generation begins from the progress."""
    async with connect_redis(settings.redis) as redis, leading(settings, "reader", redis, health):
        pipe = ReaderEnd(redis, settings.name)
        await pipe.retire()
        while True:
            progress = await _claim(pipe, health)
            try:
                await _read(settings, pipe, progress, health)
            except GenerationLost as lost:
                log.info("%s; waiting for a new one", lost)
                await pipe.give_up()


async def _claim(pipe: ReaderEnd, health: Health) -> Progress:
    """Wait until the publisher has opened a generation, and claim it.

    One that a reader claimed which was deposed, but did not know it yet, is ended here: nobody else would.
    """
    waited = 0.0
    while (progress := await pipe.claim()) is None:
        if waited >= _LONG_SECONDS:
            health.down("waiting for the publisher to open a generation")
            await pipe.retire()
        health.beat()
        waited += _CLAIM_SECONDS
        await asyncio.sleep(_CLAIM_SECONDS)
    return progress


async def _read(settings: Settings, pipe: ReaderEnd, progress: Progress, health: Health) -> None:
    """Pass on the binlog from the progress until the generation is lost."""
    async with connect_source(settings.source) as session:
        require_ready(session.server)
        entries = EntryWriter(pipe, settings.reader.backlog_limit, health)
        start = progress.position or await _first_position(session, settings)
        server = session.server
        await entries.write([Start(start, server.identity, server.flavor, progress.time_us or time.time_ns() // 1000)])
        await entries.flush()
        log.info("reading %s from %s", settings.source.hosts[0], start.gtid_set or f"{start.file}:{start.offset}")
        schemas = Schemas(lambda schema, name: _lookup(settings.source, schema, name))
        translator = Translator(settings.source, server, schemas, progress)
        stream = await session.dump(
            start,
            server_id=settings.server_id,
            heartbeat=_HEARTBEAT_SECONDS,
            wanted=settings.source.captures,
        )
        health.up()
        await _pass_on(stream, translator, entries, pipe, health)
        raise SourceUnavailable("the database closed the connection")


async def _pass_on(
    stream: Stream, translator: Translator, entries: EntryWriter, pipe: ReaderEnd, health: Health
) -> None:
    told = time.monotonic()
    async for decoded in stream:
        health.beat()
        chunk = list(decoded)
        events = await translator.translate(chunk, decoded.tables)
        if time.monotonic() - told >= _POSITION_SECONDS and (heartbeat := translator.take_heartbeat()):
            events.append(heartbeat)
        if events:
            told = time.monotonic()
            await entries.write(events)
        if stream.dry:
            await entries.flush()
        if isinstance(chunk[-1], binlog.Heartbeat):
            # Nothing to append: ask, to notice a lost generation on a silent source too.
            metrics.BACKLOG_BYTES.set(await pipe.backlog())
        _measure(chunk, translator)


def _measure(chunk: Sequence[BinlogEvent], translator: Translator) -> None:
    metrics.EVENTS_READ.inc(len(chunk))
    metrics.ROWS_READ.inc(translator.rows)
    metrics.TRANSACTIONS_READ.inc(translator.transactions)
    translator.rows = translator.transactions = 0
    metrics.BINLOG_OFFSET.set(chunk[-1].end)
    if chunk[-1].time:
        metrics.SOURCE_LAG.set(max(0.0, time.time() - chunk[-1].time))


async def _first_position(session: Session, settings: Settings) -> Position:
    """Resolve `reader.start` once; the publisher makes it the first progress."""
    if settings.reader.start == "earliest":
        return await session.earliest_position()
    return await session.current_position()


async def _lookup(source: Source, schema: str, name: str) -> Table | None:
    async with connect_source(source) as session:
        return await read_table(session, schema, name)


async def check(settings: Settings, _: Health) -> None:
    """Connect to Redis and the database and verify settings and grants."""
    async with connect_redis(settings.redis) as redis:
        await ReaderEnd(redis, settings.name).probe()
        async with open_lease(settings, "reader", redis) as lease:
            await lease.holder()
    async with connect_source(settings.source) as session:
        require_ready(session.server)
        await session.register(settings.server_id)

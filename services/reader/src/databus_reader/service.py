"""The reader's main path: claim → connect → decode → append."""

import asyncio

from databus_changes.host_checks import host_results
from databus_changes.reader_checks import READER_CHECKS
from databus_core.checks import require
from databus_core.election import leading
from databus_core.errors import DatabusError, FatalError, GenerationLost, SourceRefused, SourceUnavailable, UnknownTable
from databus_core.kafka_checks import HISTORY, kafka_results, known_progress
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import bound, get_logger
from databus_core.pipe import ReaderEnd
from databus_core.progress import Progress
from databus_core.readiness import require_engine
from databus_core.redis_checks import redis_results
from databus_core.redis_connection import connect_redis
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.source_connection import connect_source
from databus_core.tracing import open_spans
from databus_reader.baseline import Baseline
from databus_reader.generation import read_generation
from databus_reader.new_start import NewStart
from databus_reader.parking import Parking
from databus_reader.source.hosts import Hosts
from databus_reader.source.switching import Switching, start_switching
from databus_reader.tracing import make_pipe

log = get_logger(__name__)

_CLAIM_SECONDS = 0.05
#: a publisher that is running opens a generation within this time
_OPEN_SECONDS = 2.0


async def run(settings: Settings, health: Health, *, until_idle: bool = False) -> None:
    """Read the binlog as the active reader. When a generation is lost, the next starts from the progress.

    With `until_idle`, return when the publisher has committed everything that is in the binlog now.
    """
    require_engine(settings.reader.engine)
    spans = open_spans("reader", settings.name)
    health.beat()
    async with (
        connect_redis(settings.redis) as redis,
        leading(settings.reader.election, settings.name, "reader", redis, health, lambda: _reach(settings)),
    ):
        pipe = make_pipe(redis, settings.name, spans)
        hosts, baseline = Hosts(settings), Baseline(settings)
        parking = Parking(settings, baseline, health)
        new_start = NewStart(settings, parking)
        switching = await start_switching(redis, settings.name, hosts)
        await pipe.end_any_generation()
        while True:
            progress = await _claim(pipe, health)
            with bound(generation=pipe.generation):
                try:
                    begin = new_start.progress(progress)
                    if await _serve(
                        settings,
                        pipe,
                        hosts,
                        baseline,
                        parking,
                        new_start,
                        begin,
                        switching,
                        health,
                        until_idle=until_idle,
                    ):
                        return
                except FatalError as error:
                    new_start.plan(error, progress)
            await pipe.end_generation()


async def _reach(settings: Settings) -> None:
    """Reach Kafka and a host of the database. Raises the error of the first host if none can be reached."""
    await read_progress(settings)
    errors: list[DatabusError] = []
    for host in settings.source.hosts:
        try:
            async with connect_source(settings.source, host):
                return
        except DatabusError as error:
            errors.append(error)
    raise errors[0]


async def _serve(
    settings: Settings,
    pipe: ReaderEnd,
    hosts: Hosts,
    baseline: Baseline,
    parking: Parking,
    new_start: NewStart,
    progress: Progress,
    switching: Switching,
    health: Health,
    *,
    until_idle: bool,
) -> bool:
    """Read the binlog in a claimed generation. Return True at the binlog's end, with `until_idle`.

    Return False if the generation is lost, if the host cannot be read any more and there is another, or if a table is
    to be read from information_schema first.
    """
    try:
        async with hosts.connect(progress, health) as connection:
            with bound(host=connection.host):
                await read_generation(
                    settings,
                    pipe,
                    connection,
                    baseline,
                    parking,
                    new_start,
                    progress,
                    switching,
                    health,
                    until_idle=until_idle,
                )
        return True
    except GenerationLost as lost:
        log.info(LogEvent.GENERATION_LOST, f"{lost}; waiting for the next generation")
    except UnknownTable as error:
        baseline.read_missing_tables(error)
    except asyncio.CancelledError:
        await pipe.end_generation()  # otherwise the publisher might go on waiting for the rest of a transaction
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

    Another reader may have claimed a generation shortly before it noticed that it was no longer the leader. Nobody else
    ends that generation, so it is ended here.
    """
    waited = 0.0
    while (progress := await pipe.claim()) is None:
        if waited >= _OPEN_SECONDS:
            health.down("waiting for the publisher to open a generation")
            await pipe.end_any_generation()
            waited = 0.0
        health.beat()
        waited += _CLAIM_SECONDS
        await asyncio.sleep(_CLAIM_SECONDS)
    return progress


async def check(settings: Settings, _: Health) -> None:
    """Check Redis and the lease, the schema history in Kafka, and every host of the database."""
    require_engine(settings.reader.engine)
    open_spans("reader", settings.name)
    found = await kafka_results(settings, [HISTORY])
    found += await redis_results(settings, "reader")
    progress = await known_progress(settings)
    for host in settings.source.hosts:
        found += await host_results(settings, host, READER_CHECKS, progress)
    require(found)

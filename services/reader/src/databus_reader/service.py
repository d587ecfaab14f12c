"""The reader's main path: claim → connect → decode → append."""

import asyncio
from functools import partial

from databus_binlog.session import Session
from databus_changes.captured import captured_tables, require_select
from databus_changes.cascades import warn_of_cascades
from databus_core.checks import Check, run_all
from databus_core.election import leading
from databus_core.errors import FatalError, GenerationLost, SourceRefused, SourceUnavailable, UnknownTable
from databus_core.kafka_history import read_history
from databus_core.leases import open_lease
from databus_core.log_events import LogEvent
from databus_core.logs import bound, get_logger
from databus_core.pipe import ReaderEnd
from databus_core.progress import Progress
from databus_core.readiness import names_columns, require_named_columns
from databus_core.redis_connection import connect_redis
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.settings.topic_claims import require_topics
from databus_core.source_connection import check_host
from databus_reader.baseline import Baseline
from databus_reader.generation import read_generation
from databus_reader.new_start import NewStart
from databus_reader.parking import Parking
from databus_reader.source.engine import require_engine, require_readable
from databus_reader.source.hosts import Hosts
from databus_reader.source.switching import Switching, start_switching

log = get_logger(__name__)

_CLAIM_SECONDS = 0.05
#: a publisher that is running opens a generation within this time
_OPEN_SECONDS = 2.0


async def run(settings: Settings, health: Health, *, until_idle: bool = False) -> None:
    """Read the binlog as the active reader. When a generation is lost, the next starts from the progress.

    With `until_idle`, return when the publisher has committed everything that is in the binlog now.
    """
    require_engine(settings.reader.engine)
    health.beat()
    async with (
        connect_redis(settings.redis) as redis,
        leading(settings.reader.election, settings.name, "reader", redis, health),
    ):
        pipe = ReaderEnd(redis, settings.name)
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
    """Connect to Redis, to Kubernetes if it keeps the lease, to Kafka and to every host of the database.

    Verify the schema history, and the settings, grants and captured tables of the hosts.
    """
    require_engine(settings.reader.engine)
    hosts = (partial(_check_host, settings, host) for host in settings.source.hosts)
    await run_all(partial(read_history, settings), partial(_check_redis, settings), *hosts)


async def _check_redis(settings: Settings) -> None:
    async with connect_redis(settings.redis) as redis:
        await ReaderEnd(redis, settings.name).probe()
        async with open_lease(settings.reader.election, settings.name, "reader", redis) as lease:
            await lease.holder()


async def _check_host(settings: Settings, host: str) -> None:
    await check_host(
        settings.source,
        host,
        lambda session: require_readable(session, settings, host),
        lambda session: _check_tables(session, settings, host),
        Session.log_status,
        lambda session: session.register(settings.server_id),
    )


async def _check_tables(session: Session, settings: Settings, host: str) -> None:
    """Check the topics of the captured tables, and that their columns have names: in the binlog, or for the account.

    Warn of those whose rows change without being logged.
    """
    tables = await captured_tables(session, settings.source, host)
    await warn_of_cascades(session, settings.source, host, heal=settings.doubt.cascades == "heal")
    checks: list[Check] = [partial(require_topics, settings, [(table.schema, table.name) for table in tables])]
    if not names_columns(session.server):
        text = f"database {host}: binlog_row_metadata is not FULL: the schema history names the columns instead"
        log.warning(LogEvent.COLUMN_NAMES_MISSING, text, host=host)
        checks.append(partial(require_named_columns, settings, session.server, host))
        checks.append(partial(require_select, session, settings.source, tables, host))
    await run_all(*checks)

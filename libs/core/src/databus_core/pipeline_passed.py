"""Wait until a pipeline has passed the position of a dump.

A record's key has its binlog file and offset. If record and dump are from the same server, comparing the two positions
shows whether the dump contains the record. After a failover, later records are from another server. So a consumer waits
until the pipeline has passed the dump's position, and keeps Kafka's end offsets of that moment: records from these
offsets on are newer than the dump, whatever their position.
"""

import asyncio
from typing import Protocol

from aiokafka import TopicPartition

from databus_binlog import GtidSet, Position
from databus_core import kafka_client
from databus_core.errors import DumpUnusable
from databus_core.kafka_ends import by_topic, stable_ends
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger, position_fields
from databus_core.manifest import Manifest, PipelineMoment
from databus_core.progress import Progress
from databus_core.settings import Settings

log = get_logger(__name__)

_PAUSE_SECONDS = 0.5


class Topics(Protocol):
    """The topics that a consumer reads."""

    async def partitions(self) -> list[TopicPartition]:
        """List the partitions of those that exist. Raises KafkaUnavailable."""
        ...


async def wait_until_passed(settings: Settings, manifest: Manifest, topics: Topics) -> PipelineMoment:
    """Wait until the pipeline has passed the dump's position, of a chunked dump the last one.

    Raises DumpUnusable if the pipeline has failed over to another server by then, also if it is back.
    """
    log.info(
        LogEvent.BOOTSTRAP_WAITING,
        "waiting until the pipeline has passed the dump's position",
        dump=manifest.id,
        **position_fields(manifest.end or Position()),
    )
    while True:
        if moment := await moment_after(settings, manifest, topics, await read_progress(settings)):
            return moment
        await asyncio.sleep(_PAUSE_SECONDS)


async def moment_after(
    settings: Settings, manifest: Manifest, topics: Topics, progress: Progress | None
) -> PipelineMoment | None:
    """Return a moment at which the pipeline has passed the dump's position; None if, as of `progress`, it has not.

    Raises DumpUnusable like `wait_until_passed`.
    """
    if progress is None or not _has_passed(progress, manifest):
        return None
    timeout = settings.publisher.transaction_timeout
    async with (
        kafka_client.consumer(settings.kafka, "read_uncommitted") as written,
        kafka_client.consumer(settings.kafka) as committed,
    ):
        ends = by_topic(await stable_ends(timeout, written, committed, await topics.partitions()))
    # With `exactly_once`, the progress of all records before these offsets is committed, so this raises if a failover
    # precedes them.
    _has_passed(later := await read_progress(settings, to_end=True) or progress, manifest)
    return PipelineMoment(later.transaction, ends)


def is_from_pipeline_host(manifest: Manifest, progress: Progress | None) -> bool:
    """Return whether the dump was taken from the server that the pipeline reads; True if either is unknown."""
    return progress is None or "" in (progress.server, manifest.server) or progress.server == manifest.server


def _has_passed(progress: Progress, manifest: Manifest) -> bool:
    """Return whether the progress has passed the dump. Raises DumpUnusable if it is or was of another log."""
    if not is_from_pipeline_host(manifest, progress) or progress.other_log_until > manifest.transaction:
        raise DumpUnusable(
            f"after dump {manifest.id} began, the pipeline failed over to another server, or the server's binlog was "
            "reset: request a new dump"
        )
    if progress.position is None or manifest.end is None:
        return False
    dump, reached = manifest.end, progress.position
    if dump.gtid_set and reached.gtid_set:
        dumped = GtidSet.parse("mysql" if manifest.source.startswith("mysql") else "mariadb", dump.gtid_set)
        return type(dumped).from_text(reached.gtid_set).covers(dumped)
    if not (dump.file and reached.file):  # a pipeline may begin at GTIDs, and have no file yet
        return False
    return reached.log_order >= dump.log_order

"""Load a dump into an empty lake: choose → wait → load → begin the change log.

Until the change log has begun, each start repeats these steps; what an earlier start has loaded from the same dump is
not loaded again.
"""

import asyncio

from pyspark.sql import SparkSession

from databus_core.change_topics import ChangeTopics
from databus_core.dump_client import DumpApi
from databus_core.errors import ChangesLost, DumpUnusable
from databus_core.kafka_ends import Offsets
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger, position_fields
from databus_core.manifest import Manifest
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.usable_dumps import is_usable, require_rules
from databus_spark.folder import Folder
from databus_spark_sink.lake import Lake
from databus_spark_sink.loads.dumps import ReadyDump, wait_for_pipeline
from databus_spark_sink.loads.loading import DumpLoader

log = get_logger(__name__)


async def load(settings: Settings, health: Health, spark: SparkSession, lake: Lake) -> None:
    """Load a dump into the mirrors, and begin the change log where the dump ends. `health` shows the current step."""
    async with DumpApi.of(settings.dumps) as api:
        manifest, starts = await _choose(settings, health, api)
        async with api.leased(manifest.id):
            dump = await wait_for_pipeline(settings, health.down, manifest, lake.downloads, manifest.transaction or -1)
            await DumpLoader(health.down, api, lake, dump).load()
    await asyncio.to_thread(_begin, spark, lake, dump, starts)


def _begin(spark: SparkSession, lake: Lake, dump: ReadyDump, starts: Offsets) -> None:
    """Begin the change log. Mirrors that an earlier start has loaded from another dump are deleted before."""
    kept = {lake.layout.mirror(table.schema, table.name) for table in dump.tables if table.primary_key}
    mirrors = Folder(spark, lake.layout.mirrors)
    for schema in map(mirrors.inside, mirrors.names()):
        for table in map(schema.inside, schema.names()):
            if table.path not in kept:
                table.delete()
    lake.begin(starts)


async def _choose(settings: Settings, health: Health, api: DumpApi) -> tuple[Manifest, Offsets]:
    """Choose the newest dump that the lake can begin with; if there is none, request one.

    Returns it, and where the change log begins.
    """
    health.down("looking for a dump to load")
    progress = await read_progress(settings)
    topics = ChangeTopics(settings, settings.spark.tables)
    for manifest in await api.dumps():
        if is_usable(manifest, progress, settings, settings.spark.tables):
            try:
                return _with_position(manifest), await topics.starts_after(manifest)
            except ChangesLost as error:
                log.warning(LogEvent.BOOTSTRAP_REFUSED, f"{error}; a new dump is taken", dump=manifest.id)
                break
    health.down("waiting until dump-api has taken a dump")
    manifest = _with_position(await api.take(settings.spark.tables))
    require_rules(settings, manifest)
    return manifest, await topics.starts_after(manifest)


def _with_position(manifest: Manifest) -> Manifest:
    """Return the dump, and log it. Raises DumpUnusable if it has no position."""
    if manifest.position is None or not manifest.position.file:
        raise DumpUnusable(f"dump {manifest.id} has no binlog file position; request a new dump")
    log.info(
        LogEvent.BOOTSTRAP_STARTED,
        "loading the lake from a dump",
        dump=manifest.id,
        **position_fields(manifest.position),
    )
    return manifest

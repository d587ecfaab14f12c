"""Load a dump into an empty lake: choose → wait → load → begin the change log.

Until the change log has begun, each start repeats these steps; what an earlier start has loaded from the same dump is
not loaded again.
"""

import asyncio

from pyspark.sql import SparkSession

from databus_core.dump_client import DumpApi
from databus_core.errors import ChangesLost, DumpUnusable
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger, position_fields
from databus_core.manifest import Manifest, State
from databus_core.progress import Progress
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_core.table_filter import TableFilter
from databus_spark.changelog import Offsets
from databus_spark.folder import Folder
from databus_spark_sink.lake import Lake
from databus_spark_sink.loads.dumps import ReadyDump, has_rules, require_rules, wait_for_pipeline
from databus_spark_sink.loads.loading import DumpLoader
from databus_spark_sink.stream.offsets import is_from_pipeline_host, starting_offsets

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
    for manifest in await api.dumps():
        if is_usable(manifest, progress, settings):
            try:
                return _with_position(manifest), await starting_offsets(settings, manifest)
            except ChangesLost as error:
                log.warning(LogEvent.BOOTSTRAP_REFUSED, f"{error}; a new dump is taken", dump=manifest.id)
                break
    health.down("waiting until dump-api has taken a dump")
    manifest = _with_position(await api.take(settings.spark.tables))
    require_rules(settings, manifest)
    return manifest, await starting_offsets(settings, manifest)


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


def is_usable(manifest: Manifest, progress: Progress | None, settings: Settings) -> bool:
    """Return whether a dump is of this pipeline as it is now, and has all tables of the lake."""
    patterns, asked_for = settings.spark.tables, manifest.requested
    return (
        manifest.state is State.COMPLETE
        and manifest.pipeline == settings.name
        and is_from_pipeline_host(manifest, progress)
        and (progress is None or manifest.transaction >= progress.unbroken_after)
        and has_rules(settings, manifest)
        and (asked_for is None or "*.*" in asked_for or set(patterns) <= set(asked_for))
        and not TableFilter(patterns).unmatched((table.schema, table.name) for table in manifest.tables)
    )

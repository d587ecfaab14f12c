"""Load a dump into an empty lake: choose → wait → load → begin the change log.

Until the change log has begun, each start repeats these steps; what an earlier start has loaded from the same dump is
not loaded again.
"""

import asyncio

from pyspark.sql import SparkSession

from databus.dump_client import DumpApi
from databus.errors import DumpUnusable
from databus.kafka_progress import read_progress
from databus.log_events import LogEvent
from databus.logs import get_logger, position_fields
from databus.manifest import Manifest, State
from databus.runtime import Health
from databus.settings import Settings
from databus.table_filter import TableFilter
from databus_spark_sink.dumps import passed
from databus_spark_sink.lake import Lake
from databus_spark_sink.loading import DumpLoader
from databus_spark_sink.offsets import is_from_pipeline_host, starting_offsets

log = get_logger(__name__)


async def load(settings: Settings, health: Health, spark: SparkSession, lake: Lake) -> None:
    """Load a dump into the mirrors, and begin the change log where the dump ends. `health` shows the current step."""
    async with DumpApi(settings.dumps.url) as api:
        manifest = await _choose(settings, health, api)
        starts = await starting_offsets(settings, manifest)
        async with api.leased(manifest.id):
            dump = await passed(settings, health.down, manifest, lake.downloads)
            await DumpLoader(health.down, api, lake, dump).load()
    await asyncio.to_thread(lake.begin, starts)


async def _choose(settings: Settings, health: Health, api: DumpApi) -> Manifest:
    """Choose the newest dump of the tables from the server that the pipeline reads; if there is none, request one."""
    health.down("looking for a dump to load")
    progress = await read_progress(settings)
    for manifest in await api.dumps():
        usable = manifest.state is State.COMPLETE and is_from_pipeline_host(manifest, progress)
        if manifest.pipeline == settings.name and usable and _covers(manifest, settings):
            break
    else:
        health.down("waiting until dump-api has taken a dump")
        manifest = await api.take(settings.spark.tables)
    if manifest.position is None or not manifest.position.file:
        raise DumpUnusable(f"dump {manifest.id} has no binlog file position; request a new dump")
    log.info(
        LogEvent.BOOTSTRAP_STARTED,
        "loading the lake from a dump",
        dump=manifest.id,
        **position_fields(manifest.position),
    )
    return manifest


def _covers(manifest: Manifest, settings: Settings) -> bool:
    return not TableFilter(settings.spark.tables).unmatched((table.schema, table.name) for table in manifest.tables)

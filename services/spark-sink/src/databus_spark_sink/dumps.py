"""Dumps: fetch the files of one, and load them into mirrors."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from databus.dump_client import DumpApi
from databus.errors import DumpUnusable
from databus.events import Table
from databus.kafka_progress import read_progress
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.manifest import Manifest
from databus.progress import Progress
from databus.settings import Settings
from databus.table_filter import TableFilter
from databus_binlog import Position
from databus_spark.definitions import encode_definition
from databus_spark.dump_files import Say, download, read_rows
from databus_spark.folder import Folder
from databus_spark.mirror import DumpBase, MirrorState
from databus_spark_sink.lake import Lake
from databus_spark_sink.offsets import is_from_pipeline_host, wait_until_passed

log = get_logger(__name__)


@dataclass(frozen=True)
class FetchedDump:
    """A dump whose files are in the lake, and whose position the pipeline has passed."""

    manifest: Manifest
    base: DumpBase
    #: its tables that belong to the lake
    tables: Sequence[Table]
    folder: Folder
    #: ordinal of a transaction; it and all before it are in the dump
    transaction: int


async def take(settings: Settings, say: Say, api: DumpApi, tables: list[str], downloads: Folder) -> FetchedDump:
    """Request a dump of these tables, and fetch it."""
    progress = await read_progress(settings) or Progress()
    manifest = await api.take(tables)
    if not is_from_pipeline_host(manifest, progress):
        raise DumpUnusable(f"the pipeline failed over to another server before dump {manifest.id}: request a new dump")
    return await fetch(settings, say, api, manifest, downloads, progress.transaction)


async def fetch(
    settings: Settings, say: Say, api: DumpApi, manifest: Manifest, downloads: Folder, transaction: int = -1
) -> FetchedDump:
    """Put a dump's files into the lake under a lease, and wait until the pipeline has passed its position.

    The dump is known to have `transaction` and all before it.
    """
    folder = downloads.inside(manifest.id)
    kept = TableFilter(settings.spark.tables)
    tables = [table for table in manifest.tables if kept.matches(table.schema, table.name)]
    async with api.leased(manifest.id):
        await download(api, say, manifest, tables, folder)
    say(f"waiting until the pipeline has passed the position of dump {manifest.id}")
    passed = await wait_until_passed(settings, manifest)
    position = manifest.position or Position()  # without one, the pipeline cannot pass it
    base = DumpBase(manifest.id, position.file, position.offset, passed.transaction, passed.offsets)
    return FetchedDump(manifest, base, tables, folder, transaction)


def load_mirrors(spark: SparkSession, say: Say, lake: Lake, dump: FetchedDump) -> None:
    """Load a dump into mirrors, and delete its files. The change log has, or will have, what is newer."""
    for number, table in enumerate(dump.tables, 1):
        say(f"loading dump {dump.manifest.id}, table {number} of {len(dump.tables)}: {table.full_name}")
        if table.primary_key:
            _load_mirror(spark, lake, table, dump)
        else:
            text = f"{table.full_name} gets a change log and no mirror: it has no primary key"
            log.warning(LogEvent.TABLE_NOT_MIRRORED, text, table=table.full_name)
    lake.tables.add((table.schema, table.name) for table in dump.tables if table.primary_key)
    dump.folder.delete()


def _load_mirror(spark: SparkSession, lake: Lake, table: Table, dump: FetchedDump) -> None:
    rows = read_rows(spark, dump.manifest, table, dump.folder)
    state = MirrorState(dump.transaction, encode_definition(table), dump.base)
    lake.load((table.schema, table.name), rows, table, state)
    log.info(
        LogEvent.TABLE_LOADED,
        f"the mirror of {table.full_name} is loaded",
        table=table.full_name,
        rows=sum(file.rows for files in dump.manifest.files_of([table]) for file in files),
        dump=dump.manifest.id,
    )

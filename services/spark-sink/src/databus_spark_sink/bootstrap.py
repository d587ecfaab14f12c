"""Load a dump into an empty lake: choose → download → wait for the pipeline → load → begin the change log.

Until the change log has begun, each start repeats all steps, but keeps the files that an earlier start has downloaded.
"""

import asyncio
import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import zstandard
from pyspark.sql import SparkSession

from databus import durable
from databus.dump_client import DumpApi
from databus.errors import DumpUnusable
from databus.events import Table
from databus.kafka_progress import read_progress
from databus.log_events import LogEvent
from databus.logs import get_logger, position_fields
from databus.manifest import Manifest, State
from databus.runtime import Health
from databus.settings import Settings
from databus.table_filter import TableFilter
from databus_binlog import Position
from databus_spark.definitions import encode_definition
from databus_spark.layout import Layout
from databus_spark.messages import decode_dump_lines
from databus_spark.mirror import DumpBase, MirrorState
from databus_spark_sink.lake import Lake
from databus_spark_sink.offsets import is_from_pipeline_host, starting_offsets, wait_until_passed

log = get_logger(__name__)


async def load(settings: Settings, health: Health, spark: SparkSession, lake: Lake, layout: Layout) -> None:
    """Load a dump into the mirrors, and begin the change log where the dump ends. `health` shows the current step."""
    async with DumpApi(settings.dumps.url) as api:
        manifest = await _choose(settings, health, api)
        starts = await starting_offsets(settings, manifest)
        async with api.leased(manifest.id):
            folder = Path(layout.root) / "_databus" / "downloads" / manifest.id
            tables = [table for table in manifest.tables if belongs(settings, table)]
            await _download(api, health, manifest, tables, folder)
    health.down(f"waiting until the pipeline has passed the position of dump {manifest.id}")
    passed = await wait_until_passed(settings, manifest)
    position = manifest.position or Position()  # `_choose` has checked it
    base = DumpBase(manifest.id, position.file, position.offset, passed)
    await asyncio.to_thread(_load, spark, health, lake, manifest, base, tables, folder)
    await asyncio.to_thread(lake.begin, starts)
    await asyncio.to_thread(shutil.rmtree, folder.parent)


def belongs(settings: Settings, table: Table) -> bool:
    """Return whether a table is kept in the lake."""
    return TableFilter(settings.spark.tables).matches(table.schema, table.name)


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


async def _download(api: DumpApi, health: Health, manifest: Manifest, tables: Sequence[Table], folder: Path) -> None:
    """Download the tables' files and decompress them: Hadoop's zstd codec needs a native library, often missing."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    files = list(chain.from_iterable(manifest.files_of(tables)))
    for number, file in enumerate(files, 1):
        health.down(f"downloading dump {manifest.id}, file {number} of {len(files)}")
        path = folder / file.name
        if not _decompressed(path).exists():
            await api.download(manifest.id, file, path)
            await asyncio.to_thread(_decompress, path)


def _decompress(path: Path) -> None:
    with path.open("rb") as compressed, durable.replacing(_decompressed(path)) as plain:
        zstandard.ZstdDecompressor().copy_stream(compressed, plain)
    path.unlink()


def _decompressed(path: Path) -> Path:
    """Return the path of a downloaded file's decompressed content."""
    return path.with_suffix("")


def _load(
    spark: SparkSession,
    health: Health,
    lake: Lake,
    manifest: Manifest,
    base: DumpBase,
    tables: Sequence[Table],
    folder: Path,
) -> None:
    for number, table in enumerate(tables, 1):
        health.down(f"loading dump {manifest.id}, table {number} of {len(tables)}: {table.full_name}")
        if table.primary_key:
            _load_mirror(spark, lake, table, manifest, base, folder)
        else:
            text = f"{table.full_name} gets a change log and no mirror: it has no primary key"
            log.warning(LogEvent.TABLE_NOT_MIRRORED, text, table=table.full_name)


def _load_mirror(
    spark: SparkSession, lake: Lake, table: Table, manifest: Manifest, base: DumpBase, folder: Path
) -> None:
    (files,) = manifest.files_of([table])
    rows = decode_dump_lines(spark, [str(_decompressed(folder / file.name)) for file in files])
    state = MirrorState(lake.state.transaction, encode_definition(table), base)
    found = lake.mirror((table.schema, table.name)).load(rows, table, state)
    expected = sum(file.rows for file in files)
    if found != expected:
        raise DumpUnusable(
            f"dump {manifest.id}: the files of {table.full_name} have {found} rows, the manifest says {expected}; "
            "request a new dump"
        )
    log.info(
        LogEvent.TABLE_LOADED,
        f"the mirror of {table.full_name} is loaded",
        table=table.full_name,
        rows=found,
        dump=manifest.id,
    )

"""Load a dump into an empty lake: choose → download → load → wait for the pipeline → write the marker.

Until the marker exists, each start repeats all steps, but keeps the files that an earlier start has downloaded.
"""

import asyncio
import shutil
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import msgspec
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
from databus_spark_sink import decode, lake
from databus_spark_sink.columns import METADATA, lake_columns, typed_rows
from databus_spark_sink.lake import LakeLayout, belongs
from databus_spark_sink.offsets import StartingDump, is_from_pipeline_host, wait_until_passed

log = get_logger(__name__)


async def ensure_loaded(settings: Settings, health: Health, spark: SparkSession, layout: LakeLayout) -> StartingDump:
    """Return the dump that the lake was loaded from; load one if there is none yet. `health` shows the current step."""
    if layout.marker.exists():
        return msgspec.json.decode(layout.marker.read_bytes(), type=StartingDump)
    async with DumpApi(settings.dumps.url) as api:
        manifest = await _choose(settings, health, api)
        async with api.leased(manifest.id):
            folder = layout.downloads / manifest.id
            tables = [table for table in manifest.tables if belongs(settings, table.schema, table.name)]
            await _download(api, health, manifest, tables, folder)
    await asyncio.to_thread(_load, spark, health, layout, manifest, tables, folder)
    health.down(f"waiting until the pipeline has passed the position of dump {manifest.id}")
    dump = StartingDump(manifest, await wait_until_passed(settings, manifest))
    _write_marker(layout.marker, dump)
    await asyncio.to_thread(shutil.rmtree, layout.downloads)
    return dump


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
    spark: SparkSession, health: Health, layout: LakeLayout, manifest: Manifest, tables: Sequence[Table], folder: Path
) -> None:
    shutil.rmtree(layout.checkpoint, ignore_errors=True)
    for number, table in enumerate(tables, 1):
        health.down(f"loading dump {manifest.id}, table {number} of {len(tables)}: {table.full_name}")
        _create_change_log(spark, layout, table)
        if table.primary_key:
            _load_mirror(spark, layout, table, manifest, folder)
        else:
            text = f"{table.full_name} gets a change log and no mirror: it has no primary key"
            log.warning(LogEvent.TABLE_NOT_MIRRORED, text, table=table.full_name)


def _create_change_log(spark: SparkSession, layout: LakeLayout, table: Table) -> None:
    """Create an empty change log: it starts after the dump."""
    lake.create_empty(spark, layout.changes(table.schema, table.name), METADATA | lake_columns(table))


def _load_mirror(spark: SparkSession, layout: LakeLayout, table: Table, manifest: Manifest, folder: Path) -> None:
    name, path = table.full_name, layout.mirror(table.schema, table.name)
    into = lake_columns(table)
    (files,) = manifest.files_of([table])
    lake.create_empty(spark, path, into)
    if files:
        parsed = decode.parse_dump_lines(spark, [str(_decompressed(folder / file.name)) for file in files])
        typed_rows(parsed, table, into).write.format("delta").mode("append").save(str(path))
    found, expected = spark.read.format("delta").load(str(path)).count(), sum(file.rows for file in files)
    if found != expected:
        raise DumpUnusable(
            f"dump {manifest.id}: the files of {name} have {found} rows, the manifest says {expected}; "
            "request a new dump"
        )
    log.info(LogEvent.TABLE_LOADED, f"the mirror of {name} is loaded", table=name, rows=found, dump=manifest.id)


def _write_marker(marker: Path, dump: StartingDump) -> None:
    """Write the marker atomically: it means that the dump is loaded."""
    with durable.replacing(marker) as file:
        file.write(msgspec.json.encode(dump))

"""From nothing to mirrors that equal a dump: choose → download → load → hand over → mark.

It can be killed anywhere: without the marker everything is done again, with what is already downloaded.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

import msgspec
import zstandard
from pyspark.sql import SparkSession

from databus.dump_client import DumpApi
from databus.errors import DumpUnusable
from databus.events import Table
from databus.kafka_progress import read_progress
from databus.manifest import Manifest, State
from databus.settings import Settings
from databus_spark_sink import decode, lake
from databus_spark_sink.columns import METADATA, lake_columns, typed_rows
from databus_spark_sink.lake import Lake, belongs
from databus_spark_sink.offsets import Beginning, of_server_read, wait_until_passed

log = logging.getLogger("databus.sink")


async def ensure(settings: Settings, spark: SparkSession, place: Lake) -> Beginning:
    """Give the dump that the lake began with; load one if there is none yet."""
    if place.bootstrapped.exists():
        return msgspec.json.decode(place.bootstrapped.read_bytes(), type=Beginning)
    async with DumpApi(settings.dumps.url) as api:
        manifest = await _choose(settings, api)
        async with api.leased(manifest.id):
            folder = place.downloads / manifest.id
            tables = [table for table in manifest.tables if belongs(settings, table.schema, table.name)]
            await _download(api, manifest, tables, folder)
    await asyncio.to_thread(_load, spark, place, manifest, tables, folder)
    beginning = Beginning(manifest, await wait_until_passed(settings, manifest))
    _mark(place.bootstrapped, beginning)
    await asyncio.to_thread(shutil.rmtree, place.downloads)
    return beginning


async def _choose(settings: Settings, api: DumpApi) -> Manifest:
    """Take the newest dump that covers the tables and is of the server that the pipeline reads, or a new one."""
    progress = await read_progress(settings)
    for manifest in await api.dumps():
        usable = manifest.state is State.COMPLETE and of_server_read(manifest, progress)
        if manifest.pipeline == settings.name and usable and _covers(manifest, settings):
            break
    else:
        manifest = await api.take(settings.spark.tables)
    if manifest.position is None or not manifest.position.file:
        raise DumpUnusable(f"dump {manifest.id} has no binlog file position; request a new dump")
    log.info("begin with dump %s at %s:%d", manifest.id, manifest.position.file, manifest.position.offset)
    return manifest


def _covers(manifest: Manifest, settings: Settings) -> bool:
    tables = [f"{table.schema}.{table.name}" for table in manifest.tables]
    return all(any(fnmatchcase(table, pattern) for table in tables) for pattern in settings.spark.tables)


async def _download(api: DumpApi, manifest: Manifest, tables: Sequence[Table], folder: Path) -> None:
    """Put the tables' files there, decompressed: Hadoop's zstd codec needs a native library that is often missing."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    for file in chain.from_iterable(manifest.files_of(tables)):
        path = folder / file.name
        if not _lines(path).exists():
            await api.download(manifest.id, file, path)
            await asyncio.to_thread(_decompress, path)


def _decompress(path: Path) -> None:
    partial = path.with_suffix(".partial")
    with path.open("rb") as compressed, partial.open("wb") as plain:
        zstandard.ZstdDecompressor().copy_stream(compressed, plain)
    partial.rename(_lines(path))
    path.unlink()


def _lines(path: Path) -> Path:
    return path.with_suffix("")


def _load(spark: SparkSession, place: Lake, manifest: Manifest, tables: Sequence[Table], folder: Path) -> None:
    shutil.rmtree(place.checkpoint, ignore_errors=True)
    for table in tables:
        _begin_changes(spark, place, table)
        if table.primary_key:
            _load_mirror(spark, place, table, manifest, folder)
        else:
            log.warning("%s.%s has no primary key: it gets a change log and no mirror", table.schema, table.name)


def _begin_changes(spark: SparkSession, place: Lake, table: Table) -> None:
    """Make the change log empty: it begins with the dump."""
    lake.replace(spark, place.changes(table.schema, table.name), METADATA | lake_columns(table))


def _load_mirror(spark: SparkSession, place: Lake, table: Table, manifest: Manifest, folder: Path) -> None:
    name, path = f"{table.schema}.{table.name}", place.mirror(table.schema, table.name)
    into = lake_columns(table)
    (files,) = manifest.files_of([table])
    lake.replace(spark, path, into)
    if files:
        parsed = decode.lines(spark, [str(_lines(folder / file.name)) for file in files])
        typed_rows(parsed, table, into).write.format("delta").mode("append").save(str(path))
    found, expected = spark.read.format("delta").load(str(path)).count(), sum(file.rows for file in files)
    if found != expected:
        raise DumpUnusable(f"dump {manifest.id}: {name} has {found} rows, not {expected}; request a new dump")
    log.info("%s: %d rows from dump %s", name, found, manifest.id)


def _mark(marker: Path, beginning: Beginning) -> None:
    """Write the marker, whole or not at all, after everything it stands for."""
    temporary = marker.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(beginning))
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(marker)

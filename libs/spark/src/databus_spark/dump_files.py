"""The files of a dump in a folder that all executors see: download them, read their rows."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from databus_core.dump_client import DumpApi
from databus_core.errors import DiskUnavailable, DumpUnusable
from databus_core.events import Table
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.manifest import DumpFile, FileFormat, Manifest
from databus_spark.folder import Folder
from databus_spark.messages import decode_dump_lines, decode_dump_parquet
from databus_spark.types import TypeOptions, lost_values

log = get_logger(__name__)

#: is called with what is being done
Say = Callable[[str], None]


async def download(api: DumpApi, say: Say, manifest: Manifest, tables: Iterable[Table], folder: Folder) -> None:
    """Download the tables' files, one by one, and put them into the folder. The caller has a lease of the dump."""
    files = list(chain.from_iterable(files_of(manifest, table) for table in tables))
    for number, file in enumerate(files, 1):
        say(f"downloading dump {manifest.id}, file {number} of {len(files)}")
        await download_file(api, manifest, file, folder)


async def download_file(api: DumpApi, manifest: Manifest, file: DumpFile, folder: Folder) -> None:
    """Download a file and put it into the folder, unless it is there."""
    if await asyncio.to_thread(folder.size, file.name) != file.bytes:
        try:
            with TemporaryDirectory(prefix="databus-") as local:
                await api.download(manifest.id, file, Path(local) / file.name)
                await asyncio.to_thread(folder.put, Path(local) / file.name)
        except OSError as error:
            place = error.filename or "the folder for temporary files"
            text = f"{file.name} cannot be written to {place} ({error.strerror}): free space there, or set TMPDIR"
            raise DiskUnavailable(f"dump {manifest.id}: {text}") from error


def files_of(manifest: Manifest, table: Table) -> list[DumpFile]:
    """List the files that a table is read from: Parquet if the dump has it, because Spark reads it faster.

    Raises DumpUnusable if the table's name is not unique in the dump, or if the texts of its values are not exact.
    """
    (files,) = manifest.files_of([table], _format(manifest))
    if any(file.strict for file in files):
        raise DumpUnusable(
            f"dump {manifest.id}: the rows of {table.full_name} were written with compat: strict and lack information: "
            "remove this option for the table (publisher.options, publisher.routes), or leave it out of spark.tables"
        )
    return files


def read_rows(
    spark: SparkSession,
    manifest: Manifest,
    table: Table,
    folder: Folder,
    types: TypeOptions,
    files: Sequence[DumpFile] | None = None,
) -> DataFrame:
    """Return the rows of a table, or of some of its files, with the column `cells`.

    Raises DumpUnusable if it is not the right number. Values that become NULL with these options for types are logged.
    """
    files = files_of(manifest, table) if files is None else files
    paths = [f"{folder.path}/{file.name}" for file in files]
    is_parquet = _format(manifest) is FileFormat.PARQUET
    rows = decode_dump_parquet(spark, paths, table) if is_parquet else decode_dump_lines(spark, paths)
    lost = lost_values(table, types)
    found, *counts = rows.agg(sql.count("*"), *(sql.expr(f"count_if({each})") for each in lost.values())).collect()[0]
    expected = sum(file.rows for file in files)
    if found != expected:
        raise DumpUnusable(
            f"dump {manifest.id}: the files of {table.full_name} have {found} rows, the manifest says {expected}; "
            "request a new dump"
        )
    for column, count in zip(lost, counts, strict=True):
        if count:
            log.warning(
                LogEvent.VALUES_LOST,
                f"values of {table.full_name}, column {column}, are NULL in the lake, whose type has no such values, "
                "for instance zero dates (spark.types)",
                table=table.full_name,
                rows=count,
            )
    return rows


def _format(manifest: Manifest) -> FileFormat:
    return FileFormat.PARQUET if FileFormat.PARQUET in manifest.formats else FileFormat.JSONL

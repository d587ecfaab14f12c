"""The files of a dump in a folder that all executors see: download them, read their rows."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession

from databus.dump_client import DumpApi
from databus.errors import DumpUnusable
from databus.events import Table
from databus.manifest import Manifest
from databus_spark.folder import Folder
from databus_spark.messages import decode_dump_lines

#: is called with what is being done
Say = Callable[[str], None]


async def download(api: DumpApi, say: Say, manifest: Manifest, tables: Iterable[Table], folder: Folder) -> None:
    """Download the tables' files, one by one, and put them into the folder. The caller has a lease of the dump."""
    files = list(chain.from_iterable(manifest.files_of(tables)))
    with TemporaryDirectory(prefix="databus-") as local:
        for number, file in enumerate(files, 1):
            say(f"downloading dump {manifest.id}, file {number} of {len(files)}")
            if await asyncio.to_thread(folder.size, file.name) != file.bytes:
                await api.download(manifest.id, file, Path(local) / file.name)
                await asyncio.to_thread(folder.put, Path(local) / file.name)


def read_rows(spark: SparkSession, manifest: Manifest, table: Table, folder: Folder) -> DataFrame:
    """Return the rows of a table, with the column `cells`. Raises DumpUnusable if it is not the right number."""
    (files,) = manifest.files_of([table])
    rows = decode_dump_lines(spark, [f"{folder.path}/{file.name}" for file in files])
    found, expected = rows.count(), sum(file.rows for file in files)
    if found != expected:
        raise DumpUnusable(
            f"dump {manifest.id}: the files of {table.full_name} have {found} rows, the manifest says {expected}; "
            "request a new dump"
        )
    return rows

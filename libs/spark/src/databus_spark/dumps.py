"""The rows of one table in a dump as a typed DataFrame."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from pyspark.sql import DataFrame, SparkSession

from databus_core.dump_client import DumpApi
from databus_core.errors import DumpUnusable, InvalidSettings
from databus_core.events import Table
from databus_core.manifest import Manifest, State
from databus_spark.blocking import wait_for
from databus_spark.dump_files import download, files_of, read_rows
from databus_spark.folder import Folder
from databus_spark.mirror_columns import SEQUENCE
from databus_spark.types import DEFAULT_TYPES, TypeOptions, lake_columns, typed_cells

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Dump:
    """A table in a dump."""

    #: the table's columns, in the lake's types, and an empty `_seq`: every change is newer
    rows: DataFrame
    #: `position`: the binlog position that the rows are exact at; `kafka_offsets`: where to read the changes from
    manifest: Manifest


def read_dump(
    spark: SparkSession,
    source: str,
    *,
    table: str,
    folder: str = "",
    types: TypeOptions = DEFAULT_TYPES,
    api_key: str = "",
) -> Dump:
    """Return a table, `schema.table`, of a dump; `types`: as for `read_changes`.

    `source` is the URL of dump-api, or the folder of a dump that was downloaded. From dump-api, the files of the table
    in the newest complete dump that has it are downloaded, under a lease, to `folder/ID`. The DataFrame reads them
    whenever it is used. So `folder` must be a path, or a URL of a file system of Hadoop, where all executors see the
    same files, and the files must stay until then; nobody deletes them. If dump-api accepts only clients with a key,
    `api_key` is one with the scope `read`.

    Raises DumpUnusable, DumpApiUnavailable, InvalidSettings and LakeUnavailable.
    """
    if source.startswith(("http://", "https://")):
        if not folder:
            raise InvalidSettings("read_dump needs a folder for the files of the dump, which all executors see")
        return _open(spark, *wait_for(_download(spark, DumpApi(source, api_key=api_key), table, folder)), table, types)
    files = Folder(spark, source.rstrip("/"))
    if files.size(_MANIFEST) is None:
        raise DumpUnusable(f"{source} has no {_MANIFEST}, so it is not the folder of a dump: check the path")
    text = spark.read.text(f"{files.path}/{_MANIFEST}", wholetext=True).first()
    try:
        manifest = msgspec.json.decode(text[0] if text else "", type=Manifest)
    except msgspec.DecodeError as error:
        raise DumpUnusable(f"{source}/{_MANIFEST} cannot be read: download the dump again") from error
    return _open(spark, manifest, files, table, types)


async def _download(spark: SparkSession, api: DumpApi, name: str, folder: str) -> tuple[Manifest, Folder]:
    async with api:
        for manifest in await api.dumps():
            table = _find(manifest, name)
            if manifest.state is State.COMPLETE and table:
                break
        else:
            raise DumpUnusable(f"dump-api has no complete dump of {name}: check the name, or request one")
        files = Folder(spark, folder).inside(manifest.id)
        async with api.leased(manifest.id):
            await download(api, lambda _: None, manifest, [table], files)
    with TemporaryDirectory(prefix="databus-") as local:
        path = Path(local) / _MANIFEST
        path.write_bytes(msgspec.json.encode(manifest))
        files.put(path)
    return manifest, files


def _open(spark: SparkSession, manifest: Manifest, files: Folder, name: str, types: TypeOptions) -> Dump:
    table = _find(manifest, name)
    if table is None:
        raise DumpUnusable(f"dump {manifest.id} has no table {name}: check the name, or request a dump of it")
    for file in files_of(manifest, table):
        if files.size(file.name) != file.bytes:
            raise DumpUnusable(f"dump {manifest.id}: {file.name} is not complete in {files.path}: download it again")
    rows = read_rows(spark, manifest, table, files, types)
    return Dump(rows.selectExpr(*typed_cells(table, lake_columns(table, types), types), f"'' as {SEQUENCE}"), manifest)


def _find(manifest: Manifest, name: str) -> Table | None:
    return next((table for table in manifest.tables if table.full_name == name), None)

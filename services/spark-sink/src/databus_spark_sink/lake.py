"""The lake's layout, and Delta tables that follow a source table's columns.

mirror/SCHEMA/TABLE    the table as it stands
changes/SCHEMA/TABLE   every change to it, in order
_databus/              checkpoint of the stream, marker of the bootstrap
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from delta.tables import DeltaTable, DeltaTableBuilder
from pyspark.sql import SparkSession

from databus.errors import SchemaMismatch
from databus.settings import Settings
from databus_spark_sink.columns import Columns, holds, identifier

log = logging.getLogger("databus.sink")

#: Any column name MySQL allows can be stored, and a row is replaced without its file being written anew. Both are read
#: by Delta readers of protocol 3 (delta-rs from 1.0 on, Trino, DuckDB); type widening is switched on when needed only.
_PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "true",
    # a DATETIME column may be added later
    "delta.feature.timestampNtz": "supported",
}


class Lake:
    """Where everything is."""

    def __init__(self, url: str) -> None:
        self.root = Path(unquote(urlsplit(url).path))
        self.checkpoint = self.root / "_databus" / "checkpoint"
        self.bootstrapped = self.root / "_databus" / "bootstrap.json"
        self.downloads = self.root / "_databus" / "downloads"

    @property
    def streaming(self) -> bool:
        """Whether the stream has its first offsets in the checkpoint already."""
        return (self.checkpoint / "sources" / "0" / "0").exists()

    def mirror(self, schema: str, table: str) -> Path:
        """Say where a table's mirror is."""
        return self.root / "mirror" / _folder(schema) / _folder(table)

    def changes(self, schema: str, table: str) -> Path:
        """Say where a table's change log is."""
        return self.root / "changes" / _folder(schema) / _folder(table)


def belongs(settings: Settings, schema: str, table: str) -> bool:
    """Say whether a table is kept in the lake."""
    return any(fnmatchcase(f"{schema}.{table}", pattern) for pattern in settings.spark.tables)


def exists(spark: SparkSession, path: Path) -> bool:
    """Say whether there is a Delta table."""
    return DeltaTable.isDeltaTable(spark, str(path))


def columns(spark: SparkSession, path: Path) -> Columns:
    """Read a table's columns."""
    return dict(spark.read.format("delta").load(str(path)).dtypes)


def replace(spark: SparkSession, path: Path, wanted: Columns) -> None:
    """Create a table, or make it empty and its columns these."""
    _build(DeltaTable.createOrReplace(spark), path, wanted)


def follow(spark: SparkSession, path: Path, wanted: Columns) -> Columns:
    """Create a table, or add what it lacks: columns, width of a type. Gives the columns it has afterwards.

    Columns that are gone from the source stay. Raises SchemaMismatch where a column's values do not fit its old type.
    """
    if not exists(spark, path):
        _build(DeltaTable.createIfNotExists(spark), path, wanted)
        return wanted
    present = columns(spark, path)
    name = {column.lower(): column for column in present}
    added = {column: kind for column, kind in wanted.items() if column.lower() not in name}
    shared = [(name[column.lower()], kind) for column, kind in wanted.items() if column.lower() in name]
    wider = {column: kind for column, kind in shared if not holds(present[column], kind)}
    for column, kind in wider.items():
        if not holds(kind, present[column]):
            raise SchemaMismatch(
                f"{path}: column {column} was {present[column]} and is {kind} now, which cannot hold its old values: "
                "remove the lake to begin with a new dump"
            )
    table = f"delta.{identifier(str(path))}"
    if added:
        listed = ", ".join(f"{identifier(column)} {kind}" for column, kind in added.items())
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({listed})")
        log.warning("%s: new columns (%s) are NULL in older rows, also where ALTER gave a default", path, listed)
    if wider:
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    for column, kind in wider.items():
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {identifier(column)} TYPE {kind}")
    return columns(spark, path) if added or wider else present


@contextmanager
def once(spark: SparkSession, application: str, version: int) -> Iterator[None]:
    """Make the Delta writes inside happen at most once for this application and version, however often they run."""
    settings = {"txnAppId": application, "txnVersion": str(version)}
    for key, setting in settings.items():
        spark.conf.set(f"spark.databricks.delta.write.{key}", setting)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(f"spark.databricks.delta.write.{key}")


def _build(builder: DeltaTableBuilder, path: Path, wanted: Columns) -> None:
    for column, kind in wanted.items():
        builder = builder.addColumn(column, kind)
    for key, setting in _PROPERTIES.items():
        builder = builder.property(key, setting)
    builder.location(str(path)).execute()


def _folder(name: str) -> str:
    """Name a folder in letters that mean nothing to any file system or URL; different names stay different."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda match: "".join(f"~{byte:02X}" for byte in match[0].encode()), name)

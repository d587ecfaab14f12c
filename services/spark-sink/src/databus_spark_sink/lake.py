"""The lake's folders, and Delta tables whose columns follow those of a source table.

mirror/SCHEMA/TABLE    the table's current rows
changes/SCHEMA/TABLE   every change to the table since the dump, with its order
_databus/              the stream's checkpoint, downloads, and the marker, which means that a dump is loaded
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from delta.tables import DeltaTable, DeltaTableBuilder
from pyspark.sql import SparkSession

from databus.errors import SchemaMismatch
from databus.log_events import LogEvent
from databus.logs import get_logger
from databus.settings import Settings
from databus.table_filter import TableFilter
from databus_spark_sink.columns import Columns, can_represent, identifier

log = get_logger(__name__)

#: Column mapping allows every column name that MySQL allows; deletion vectors replace a row without rewriting its file.
#: Delta readers of protocol 3 support both (delta-rs from 1.0 on, Trino, DuckDB). Type widening, which they may not
#: support, is only enabled on tables that need it.
_PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "true",
    # enabled up front: a DATETIME column may be added later
    "delta.feature.timestampNtz": "supported",
}


class LakeLayout:
    """The paths of everything in the lake."""

    def __init__(self, url: str) -> None:
        self.root = Path(unquote(urlsplit(url).path))
        self.checkpoint = self.root / "_databus" / "checkpoint"
        #: exists once a dump is loaded
        self.marker = self.root / "_databus" / "bootstrap.json"
        self.downloads = self.root / "_databus" / "downloads"

    @property
    def has_checkpoint(self) -> bool:
        """Whether the stream's checkpoint has offsets."""
        return (self.checkpoint / "sources" / "0" / "0").exists()

    def mirror(self, schema: str, table: str) -> Path:
        """Return the path of a table's mirror."""
        return self.root / "mirror" / _folder(schema) / _folder(table)

    def changes(self, schema: str, table: str) -> Path:
        """Return the path of a table's change log."""
        return self.root / "changes" / _folder(schema) / _folder(table)


def belongs(settings: Settings, schema: str, table: str) -> bool:
    """Return whether a table is kept in the lake."""
    return TableFilter(settings.spark.tables).matches(schema, table)


def exists(spark: SparkSession, path: Path) -> bool:
    """Return whether there is a Delta table at this path."""
    return DeltaTable.isDeltaTable(spark, str(path))


def read_columns(spark: SparkSession, path: Path) -> Columns:
    """Read a Delta table's columns."""
    return dict(spark.read.format("delta").load(str(path)).dtypes)


def create_empty(spark: SparkSession, path: Path, wanted: Columns) -> None:
    """Create an empty Delta table with these columns, in place of an existing one."""
    _build(DeltaTable.createOrReplace(spark), path, wanted)


def evolve(spark: SparkSession, path: Path, wanted: Columns) -> Columns:
    """Create a Delta table, or add missing columns and widen types. Returns the columns that the table then has.

    Columns that the source has dropped stay. Raises SchemaMismatch if a type can be neither kept nor widened.
    """
    if not exists(spark, path):
        _build(DeltaTable.createIfNotExists(spark), path, wanted)
        return wanted
    present = read_columns(spark, path)
    name = {column.lower(): column for column in present}
    added = {column: kind for column, kind in wanted.items() if column.lower() not in name}
    shared = [(name[column.lower()], kind) for column, kind in wanted.items() if column.lower() in name]
    wider = {column: kind for column, kind in shared if not can_represent(present[column], kind)}
    for column, kind in wider.items():
        if not can_represent(kind, present[column]):
            raise SchemaMismatch(
                f"{path}: column {column} has changed from {present[column]} to {kind}, which cannot represent its old "
                "values: remove the lake to start from a new dump"
            )
    table = f"delta.{identifier(str(path))}"
    if added:
        listed = ", ".join(f"{identifier(column)} {kind}" for column, kind in added.items())
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({listed})")
        log.warning(
            LogEvent.COLUMNS_ADDED,
            f"{path} has new columns ({listed}): they are NULL in older rows, even if ALTER TABLE gave a default",
        )
    if wider:
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    for column, kind in wider.items():
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {identifier(column)} TYPE {kind}")
    return read_columns(spark, path) if added or wider else present


@contextmanager
def idempotent(spark: SparkSession, application: str, version: int) -> Iterator[None]:
    """Make Delta skip the writes in this block if the table already has this application's `version` or a later one."""
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
    """Escape a name so that no character has a meaning in paths and URLs; different names give different folders."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda match: "".join(f"~{byte:02X}" for byte in match[0].encode()), name)

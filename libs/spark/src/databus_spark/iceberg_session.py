"""What tables in Iceberg need of a Spark session: a catalog, names, and settings while rows are written."""

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from databus_spark.types import identifier

_CATALOG = "iceberg"
#: names of Iceberg's metadata columns, which tables cannot have; and what `stored_name` makes of them
_RESERVED = re.compile(
    r"_(file|pos|deleted|spec_id|partition|row_id|last_updated_sequence_number|change_type|change_ordinal"
    r"|commit_snapshot_id)_*",
    re.IGNORECASE,
)


def configuration(root: str) -> dict[str, str]:
    """Return what a Spark session needs for the tables of a lake, and all others in the same file system."""
    return {
        f"spark.sql.catalog.{_CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{_CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{_CATALOG}.warehouse": f"{_split(root)[0]}/",
        # another session may have written
        f"spark.sql.catalog.{_CATALOG}.cache-enabled": "false",
    }


def table_name(path: str) -> str:
    """Return the name, for SQL, of the table in a folder."""
    return ".".join(map(identifier, (_CATALOG, *_split(path)[1])))


def stored_name(name: str) -> str:
    """Return the name that a column has in Iceberg: `_file` becomes `_file_`, `_file_` becomes `_file__`."""
    return f"{name}_" if _RESERVED.fullmatch(name) else name


def shown_name(name: str) -> str:
    """Return the name that a column of Iceberg has in the lake."""
    return name[:-1] if _RESERVED.fullmatch(name) else name


@contextmanager
def shared_view(spark: SparkSession, rows: DataFrame) -> Iterator[str]:
    """Yield a view of rows, which may be of another session, with the names that columns have in Iceberg."""
    view = f"databus_{secrets.token_hex(8)}"
    rows.toDF(*map(stored_name, rows.columns)).createGlobalTempView(view)
    try:
        yield f"global_temp.{view}"
    finally:
        # Not `dropGlobalTempView`, which also makes Spark forget rows that are persisted.
        spark._jsparkSession.sharedState().globalTempViewManager().remove(view)


@contextmanager
def writing(
    spark: SparkSession, summary: Mapping[str, str], settings: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Give the snapshots that the session writes a summary. `settings` are further settings meanwhile."""
    temporary = {f"spark.sql.iceberg.snapshot-property.{key}": value for key, value in summary.items()}
    temporary |= settings or {}
    for key, value in temporary.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in temporary:
            spark.conf.unset(key)


def _split(path: str) -> tuple[str, list[str]]:
    """Return the URL of the file system, and the folders of a path in it."""
    scheme, _, rest = path.partition("://")
    host, *folders = rest.split("/")
    return f"{scheme}://{host}", folders

"""The table formats of a lake. All tables that a session opens have its format."""

from pyspark.sql import SparkSession

from databus_spark import delta, iceberg, iceberg_session
from databus_spark.folder import Folder
from databus_spark.table import LakeTable

#: `spark.table_format` → its tables
FORMATS: dict[str, type[LakeTable]] = {"delta": delta.Table, "iceberg": iceberg.Table}
#: format → the folder of a table that has its commits
_COMMITS = {"delta": "_delta_log", "iceberg": "metadata"}
_FORMAT = "spark.sql.sources.default"


def configuration(table_format: str, root: str) -> dict[str, str]:
    """Return what a Spark session needs for a lake in one of `FORMATS`."""
    needed = iceberg_session.configuration(root) if table_format == "iceberg" else delta.CONFIGURATION
    return needed | {_FORMAT: table_format}


def open_table(spark: SparkSession, path: str) -> LakeTable:
    """Return a table, which need not exist, in the session's format."""
    return FORMATS[_format(spark)](spark, path)


def other_format(spark: SparkSession, path: str) -> str | None:
    """Return the format of the table at this path, if it is not the session's."""
    folder, of_session = Folder(spark, path), FORMATS[_format(spark)]
    others = [name for name, each in FORMATS.items() if each is not of_session]
    return next((name for name in others if folder.size(_COMMITS[name]) is not None), None)


def _format(spark: SparkSession) -> str:
    """Return Spark's default format, or Delta if that is none of a lake."""
    found = str(spark.conf.get(_FORMAT))
    return found if found in FORMATS else "delta"

"""DataFrames of rows that are in memory.

Java reads them from JSON: `createDataFrame` would need Python on executors.
"""

from collections.abc import Sequence

import msgspec
from pyspark.sql import DataFrame, SparkSession

from databus_spark.types import literal


def local_rows(spark: SparkSession, rows: Sequence[object], columns: str) -> DataFrame:
    """Return rows, which are JSON objects, with these columns, such as `id bigint, name string`."""
    text = literal(msgspec.json.encode(rows).decode())
    return spark.sql(f"SELECT inline(from_json({text}, 'array<struct<{columns}>>'))")

"""Tables of the lake in Delta. The text of a commit is its user metadata."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession

from databus_spark.table import LakeTable
from databus_spark.types import Columns, can_represent, identifier

#: Column mapping allows every column name that MySQL allows; deletion vectors replace a row without rewriting its file.
#: Delta readers of protocol 3 support both (delta-rs from 1.0 on, Trino, DuckDB). Type widening, which they may not
#: support, is only enabled on tables that need it.
_PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableDeletionVectors": "true",
    # enabled up front: a DATETIME column may be added later
    "delta.feature.timestampNtz": "supported",
    # what makes each append of the change log unique need not be known for longer
    "delta.setTransactionRetentionDuration": "interval 1 days",
}
#: what a Spark session needs for tables in Delta
CONFIGURATION = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_TEXT = "spark.databricks.delta.commitInfo.userMetadata"


class Table(LakeTable):
    """A Delta table, as one session sees it."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.path = path

    @property
    def exists(self) -> bool:
        """Whether there is such a table."""
        return bool(DeltaTable.isDeltaTable(self.spark, self.path))

    def read(self, version: int | None = None) -> DataFrame:
        """Return its rows, as of now or of a version."""
        reader = self.spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(self.path)

    def text(self) -> str:
        """Return the text of our last commit; empty if there is none."""
        for limit in (1, None):  # nearly always, the last commit is ours
            if found := self._commits(limit):
                return found[0][1]
        return ""

    def commits(self) -> list[tuple[int, str]]:
        """Return version and text of our commits, the newest first."""
        return self._commits(None)

    def _commits(self, limit: int | None) -> list[tuple[int, str]]:
        """Return our commits among the last `limit` commits, or among all."""
        history = DeltaTable.forPath(self.spark, self.path).history(limit).where("userMetadata is not null")
        rows = history.orderBy("version", ascending=False).select("version", "userMetadata").collect()
        return [(row[0], row[1]) for row in rows]

    def append(self, rows: DataFrame, text: str, identity: str) -> None:
        """Append rows, unless rows of this identity were appended before."""
        options = {"userMetadata": text, "txnAppId": identity, "txnVersion": "1"}
        rows.write.format("delta").mode("append").options(**options).save(self.path)

    def overwrite(self, rows: DataFrame, text: str, partitions: Sequence[str] = ()) -> None:
        """Replace rows and columns; create the table, partitioned by these columns, if there is none."""
        options = {"userMetadata": text, "overwriteSchema": "true"} | _PROPERTIES
        rows.write.format("delta").mode("overwrite").partitionBy(*partitions).options(**options).save(self.path)

    def widens(self, kind: str, into: str) -> bool:
        """Return whether a type can be widened in place: to all that Spark's types of the lake can represent."""
        return can_represent(into, kind)

    def add_columns(self, added: Columns, wider: Columns, text: str) -> None:
        """Add columns, which are NULL in all rows, and widen types. It may be interrupted, and called again."""
        present = self.columns()
        name = f"delta.{identifier(self.path)}"
        if missing := {column: kind for column, kind in added.items() if column not in present}:
            listed = ", ".join(f"{identifier(column)} {kind}" for column, kind in missing.items())
            self.spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({listed})")
        if wider:
            self.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        for column, kind in wider.items():
            self.spark.sql(f"ALTER TABLE {name} ALTER COLUMN {identifier(column)} TYPE {kind}")
        self.note(text)

    def merge(self, rows: DataFrame, on: Sequence[str], removed: str, text: str, newer: str) -> None:
        """Delete the rows with the keys of `rows` for which `removed` is true, and write the others.

        A row that exists is only replaced if `newer`, over the aliases `t` and `s`, is true.
        """
        # The table may have further columns: `add_columns` was interrupted, and what was before it is merged again.
        shared = [name for name in self.columns() if name in rows.columns]
        columns: dict[str, str | Column] = {name: f"s.{name}" for name in map(identifier, shared)}
        condition = " AND ".join(f"t.{column} <=> s.{column}" for column in map(identifier, on))
        with self._committing(text):
            result = (
                DeltaTable.forPath(self.spark, self.path)
                .alias("t")
                .merge(rows.alias("s"), condition)
                .whenMatchedDelete(f"({removed}) and ({newer})")
                .whenMatchedUpdate(newer, columns)
                .whenNotMatchedInsert(f"not ({removed})", columns)
                .execute()
            )
        if result.collect()[0]["num_affected_rows"] == 0:
            self.note(text)  # a merge that changes nothing commits nothing

    def delete(self, condition: str, text: str) -> None:
        """Delete rows."""
        with self._committing(text):
            DeltaTable.forPath(self.spark, self.path).delete(condition)

    def note(self, text: str) -> None:
        """Commit a text without changing anything else."""
        with self._committing(text):
            self.spark.sql(f"ALTER TABLE delta.{identifier(self.path)} SET TBLPROPERTIES ('databus.noted' = 'true')")

    @contextmanager
    def _committing(self, text: str) -> Iterator[None]:
        self.spark.conf.set(_TEXT, text)
        try:
            yield
        finally:
            self.spark.conf.unset(_TEXT)

"""Tables of the lake in Delta. The text of a commit is its user metadata."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession

from databus_spark.table import LakeTable, Ranges
from databus_spark.types import Columns, can_represent, identifier, literal

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
#: Spark compares decimals with files that were written before the column was widened, and whose integers are too short
_PUSHDOWN = "spark.sql.parquet.filterPushdown.decimal"
#: commits that are read first, to find the last one that has a text
_RECENT = 10
#: operations of commits without a text, after which a table is what it was before, or has fewer entries
_UPKEEP = {"OPTIMIZE", "DELETE", "SET TBLPROPERTIES", "VACUUM START", "VACUUM END"}
_COMPACTION = {
    # Larger files are not written again, unless many of their rows are deleted.
    "spark.databricks.delta.optimize.minFileSize": str(128 * 2**20),
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.3",
}
_VACUUM = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",  # `spark.maintain.keep` has a minimum
    "spark.databricks.delta.vacuum.logging.enabled": "false",  # no commits by which nothing changes
}


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

    def last(self) -> tuple[int, str]:
        """Return the last version that has a text, and the text. It is empty if there is none."""
        if found := self._own_commit():
            return found
        for limit in (_RECENT, None):  # nearly always, ours is one of few before it
            if commits := self.commits(limit):
                return commits[0]
        return -1, ""

    def newest(self) -> int:
        """Return the version that readers get."""
        return self._newest()[1]

    def written(self) -> float:
        """Return when the last commit that has a text was made; 0: it is not among the last ones."""
        recent = DeltaTable.forPath(self.spark, self.path).history(_RECENT).where("userMetadata is not null")
        return float(recent.selectExpr("coalesce(max(unix_micros(timestamp)), 0) / 1e6").collect()[0][0])

    def _newest(self) -> tuple[Any, int]:
        """Return Delta's log in Java, and the newest version."""
        java: Any = self.spark._jvm
        found = java.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(self.spark._jsparkSession, self.path)
        return found._1(), found._2().version()

    def _own_commit(self) -> tuple[int, str] | None:
        """Return version and text of the last commit, if it has a text; Java reads it without a job, unlike history."""
        java: Any = self.spark._jvm
        log, version = self._newest()
        info = log.getChanges(version, java.scala.Option.empty(), False).next()._2().head()
        if info.getClass().getSimpleName() != "CommitInfo" or info.userMetadata().isEmpty():
            return None
        return version, info.userMetadata().get()

    def commits(self, limit: int | None = None) -> list[tuple[int, str]]:
        """Return versions and their texts, the newest first."""
        history = DeltaTable.forPath(self.spark, self.path).history(limit)
        found: dict[int, str] = {}
        for version, operation, text in (
            history.select("version", "operation", "userMetadata").sort("version").collect()
        ):
            if text is not None:
                found[version] = text
            elif operation in _UPKEEP and version - 1 in found:
                found[version] = found[version - 1]
        return sorted(found.items(), reverse=True)

    def append(self, rows: DataFrame, text: str, identity: str) -> None:
        """Append rows, unless rows of this identity were appended before."""
        options = {"userMetadata": text, "txnAppId": identity, "txnVersion": "1"}
        rows.write.format("delta").mode("append").options(**options).save(self.path)

    def overwrite(
        self, rows: DataFrame, text: str, partitions: Sequence[str] = (), skipping: Sequence[str] = ()
    ) -> None:
        """Replace rows and columns; create the table, partitioned by these columns, if there is none."""
        options = {"userMetadata": text, "overwriteSchema": "true"} | _PROPERTIES
        if skipping:
            options["delta.dataSkippingStatsColumns"] = ",".join(map(identifier, skipping))
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

    def merge(self, rows: DataFrame, on: Sequence[str], removed: str, text: str, newer: str, ranges: Ranges) -> None:
        """Delete the rows with the keys of `rows` for which `removed` is true, and write the others.

        A row that exists is only replaced if `newer`, over the aliases `t` and `s`, is true.
        """
        # The table may have further columns: `add_columns` was interrupted, and what was before it is merged again.
        shared = [name for name in self.columns() if name in rows.columns]
        columns: dict[str, str | Column] = {name: f"s.{name}" for name in map(identifier, shared)}
        equal = [f"t.{column} <=> s.{column}" for column in map(identifier, on)]
        near = [f"t.{identifier(name)} BETWEEN {low} AND {high}" for name, (low, high) in ranges.items()]
        condition = " AND ".join((*equal, *near))
        with self._committing(text, {_PUSHDOWN: "false"}):
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

    # --- upkeep, which keeps the text

    def compact(self) -> None:
        """Write small files together."""
        self._configure(_COMPACTION)
        self.spark.sql(f"OPTIMIZE delta.{identifier(self.path)}")

    def discard(self, condition: str) -> None:
        """Delete rows that nobody needs any more."""
        DeltaTable.forPath(self.spark, self.path).delete(condition)

    def vacuum(self, seconds: float) -> None:
        """Delete the files that no version of the last `seconds` has."""
        # Delta lists with so many tasks, by default 10,000, however few files there are.
        tasks = str(self.spark.sparkContext.defaultParallelism)
        self._configure(_VACUUM | {"spark.sql.sources.parallelPartitionDiscovery.parallelism": tasks})
        DeltaTable.forPath(self.spark, self.path).vacuum(seconds / 3600)

    def files(self) -> int:
        """Return how many files have its rows."""
        return int(self._detail("numFiles"))

    def keep_history(self, seconds: float) -> None:
        """Keep the history of versions so long."""
        kept = f"interval {int(seconds)} seconds"
        self.set_properties({"delta.deletedFileRetentionDuration": kept, "delta.logRetentionDuration": kept})

    def properties(self) -> dict[str, str]:
        """Return the table's properties."""
        return dict(self._detail("properties"))

    def set_properties(self, properties: dict[str, str]) -> None:
        """Set properties that the table does not have already."""
        if missing := properties.items() - self.properties().items():
            listed = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in sorted(missing))
            self.spark.sql(f"ALTER TABLE delta.{identifier(self.path)} SET TBLPROPERTIES ({listed})")

    def _detail(self, name: str) -> Any:
        return DeltaTable.forPath(self.spark, self.path).detail().select(name).collect()[0][0]

    def _configure(self, settings: dict[str, str]) -> None:
        for key, value in settings.items():
            self.spark.conf.set(key, value)

    @contextmanager
    def _committing(self, text: str, settings: Mapping[str, str] | None = None) -> Iterator[None]:
        """Give a commit its text. `settings` are further settings of the session meanwhile."""
        temporary = {_TEXT: text} | dict(settings or {})
        before = {key: self.spark.conf.get(key, None) for key in temporary}
        try:
            self._configure(temporary)
            yield
        finally:
            for key, value in before.items():
                if value is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, value)

"""Tables of the lake in Iceberg. The text of a commit is in its snapshot's summary.

They are tables of a Hadoop catalog: a commit is a rename to the next metadata file. That is atomic for one writer on
all file systems, also on object stores. On HDFS, and nowhere else, it is atomic for several writers at the same moment.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from databus_spark.iceberg_session import shared_view, shown_name, stored_name, table_name, writing
from databus_spark.table import LakeTable, Ranges
from databus_spark.types import Columns, can_represent, identifier

#: Position deletes replace a row without rewriting its file, and all Iceberg readers know them, unlike the deletion
#: vectors of version 3. One delete file for each data file: more do not make readers faster.
_PROPERTIES = {
    "format-version": "2",
    "write.merge.mode": "merge-on-read",
    "write.delete.granularity": "file",
    # `append` stages rows before it publishes them
    "write.wap.enabled": "true",
    # a task writes the rows of all partitions that it has, without a shuffle
    "write.distribution-mode": "none",
    "write.spark.fanout.enabled": "true",
    # each commit writes a new metadata file
    "write.metadata.delete-after-commit.enabled": "true",
}
_TEXT = "databus.text"
#: marks the staged snapshot of one append
_STAGED = "databus.staged"
_PUBLISHED = "published-wap-id"
#: operations of snapshots without a text, after which a table is what it was before, or has fewer entries
_UPKEEP = {"replace", "delete"}


class Table(LakeTable):
    """An Iceberg table."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.path = path
        self._java: Any = spark._jvm
        self._name = table_name(path)

    @property
    def exists(self) -> bool:
        """Whether there is such a table."""
        return bool(self.spark.catalog.tableExists(self._name))

    def read(self, version: int | None = None) -> DataFrame:
        """Return its rows, as of now or of a snapshot."""
        reader = self.spark.read
        stored = (reader if version is None else reader.option("versionAsOf", version)).table(self._name)
        return stored.toDF(*map(shown_name, stored.columns))

    def last(self) -> tuple[int, str]:
        """Return the last snapshot that has a text, and the text."""
        snapshot = self._load().currentSnapshot()
        if (text := snapshot.summary().get(_TEXT)) is not None:
            return int(snapshot.snapshotId()), str(text)
        found = self.commits()  # it was compacted, for instance
        return found[0] if found else (-1, "")

    def newest(self) -> int:
        """Return the snapshot that readers get."""
        return int(self._load().currentSnapshot().snapshotId())

    def written(self) -> float:
        """Return when the last snapshot that has a text was made."""
        return max((each / 1000 for each in self._times_with_text(self._load())), default=0.0)

    def commits(self, limit: int | None = None) -> list[tuple[int, str]]:
        """Return snapshots and their texts, the newest first."""
        columns = "snapshot_id", "operation", f"summary['{_TEXT}']"
        # in the order of commits; snapshots of before an overwrite are no ancestors of later ones
        snapshots = self.spark.read.table(f"{self._name}.snapshots").selectExpr(*columns).collect()
        found: list[tuple[int, str]] = []
        before = None
        for snapshot, operation, own in snapshots[-limit:] if limit else snapshots:
            text = before if own is None and operation in _UPKEEP else own
            if text is not None:
                found.append((snapshot, text))
            before = text
        return found[::-1]

    def append(self, rows: DataFrame, text: str, identity: str) -> None:
        """Append rows, unless rows of this identity were appended before.

        Rows are staged and published, which Iceberg does only once for each `wap.id`, also if there are two writers.
        """
        if not self.exists:
            with shared_view(self.spark, rows) as view, writing(self.spark, {_TEXT: text, _PUBLISHED: identity}):
                self._write(view, (), {}).create()
            return
        mark = secrets.token_hex(8)
        with shared_view(self.spark, rows) as view, writing(self.spark, {_STAGED: mark}, {"spark.wap.id": identity}):
            self.spark.table(view).writeTo(self._name).append()
        self._publish(mark, text)

    def _publish(self, mark: str, text: str) -> None:
        """Publish a staged snapshot, unless one of its `wap.id` was published.

        The text has a commit of its own in the same transaction: Iceberg writes another snapshot, without our summary,
        if the table has changed since this one was staged.
        """
        table = self._load()
        staged = next(each for each in reversed(table.snapshots()) if each.summary().get(_STAGED) == mark)
        transaction = table.newTransaction()
        try:
            transaction.manageSnapshots().cherrypick(staged.snapshotId()).commit()
            _note(transaction, text)
            transaction.commitTransaction()
        except Py4JJavaError as error:
            if not error.java_exception.getClass().getName().endswith(".DuplicateWAPCommitException"):
                raise

    def overwrite(
        self, rows: DataFrame, text: str, partitions: Sequence[str] = (), skipping: Sequence[str] = ()
    ) -> None:
        """Replace rows and columns; create the table, partitioned by these columns, if there is none."""
        metrics = {f"write.metadata.metrics.column.{stored_name(name)}": "truncate(16)" for name in skipping}
        if metrics:
            metrics["write.metadata.metrics.default"] = "none"
        with shared_view(self.spark, rows) as view, writing(self.spark, {_TEXT: text}):
            self._write(view, partitions, metrics).createOrReplace()

    def widens(self, kind: str, into: str) -> bool:
        """Return whether a type can be widened in place: FLOAT, and decimals of the same scale."""
        return can_represent(into, kind) and kind.partition(",")[2] == into.partition(",")[2]  # of decimals, the scale

    def add_columns(self, added: Columns, wider: Columns, text: str) -> None:
        """Add columns, which are NULL in all rows, and widen types, in one commit."""
        present = self.columns()
        transaction = self._load().newTransaction()
        schema = transaction.updateSchema()
        for column, kind in added.items():
            if column not in present:
                schema.addColumn(None, stored_name(column), self._type(kind))
        for column, kind in wider.items():
            schema.updateColumn(stored_name(column), self._type(kind))
        schema.commit()
        _note(transaction, text)
        transaction.commitTransaction()

    def merge(self, rows: DataFrame, on: Sequence[str], removed: str, text: str, newer: str, ranges: Ranges) -> None:
        """Delete the rows with the keys of `rows` for which `removed` is true, and write the others."""
        shared = [identifier(stored_name(name)) for name in self.columns() if name in rows.columns]
        keys = [identifier(stored_name(name)) for name in on]
        near = [f"t.{identifier(stored_name(name))} between {low} and {high}" for name, (low, high) in ranges.items()]
        into, values = ", ".join(shared), ", ".join(f"s.{name}" for name in shared)
        query = (
            f"ON {' AND '.join((*(f't.{key} <=> s.{key}' for key in keys), *near))} "  # noqa: S608 – names are quoted
            f"WHEN MATCHED AND ({removed}) AND ({newer}) THEN DELETE "
            f"WHEN MATCHED AND ({newer}) THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in shared)} "
            f"WHEN NOT MATCHED AND NOT ({removed}) THEN INSERT ({into}) VALUES ({values})"
        )
        with shared_view(self.spark, rows) as view, writing(self.spark, {_TEXT: text}):
            self.spark.sql(f"MERGE INTO {self._name} AS t USING {view} AS s {query}")

    def note(self, text: str) -> None:
        """Commit a text without changing anything else."""
        _note(self._load(), text)

    def compact(self) -> None:
        """Write small files together, and then the deletions of each file."""
        actions, table = self._actions(), self._load()
        actions.rewriteDataFiles(table).execute()
        actions.rewritePositionDeletes(table).execute()

    def discard(self, condition: str) -> None:
        """Delete rows that nobody needs any more."""
        self.spark.sql(f"DELETE FROM {self._name} WHERE {condition}")  # noqa: S608 – the name is quoted

    def vacuum(self, seconds: float) -> None:
        """Delete the files that no snapshot of the last `seconds` has, also those of appends that were interrupted."""
        actions, table, until = self._actions(), self._load(), int((time.time() - seconds) * 1000)
        # A snapshot of upkeep has no text of its own: that of the one before it counts, so this must stay.
        actions.expireSnapshots(table).expireOlderThan(min([until, *self._times_with_text(table)[-1:]])).execute()
        actions.deleteOrphanFiles(table).olderThan(until).execute()

    def _times_with_text(self, table: Any) -> list[int]:
        """Return when the snapshots that have a text were made, in ms since the epoch, the newest last."""
        return [each.timestampMillis() for each in table.snapshots() if each.summary().get(_TEXT) is not None]

    def files(self) -> int:
        """Return how many files have its rows."""
        return int(self._load().currentSnapshot().summary()["total-data-files"])

    def keep_history(self, seconds: float) -> None:
        """Keep snapshots so long, also if another program expires them."""
        self.set_properties({"history.expire.max-snapshot-age-ms": str(int(seconds * 1000))})

    def properties(self) -> dict[str, str]:
        """Return the table's properties."""
        return dict(self._load().properties())

    def set_properties(self, properties: dict[str, str]) -> None:
        """Set properties that the table does not have already."""
        if missing := properties.items() - self.properties().items():
            update = self._load().updateProperties()
            for key, value in missing:
                update.set(key, value)
            update.commit()

    def _actions(self) -> Any:
        return self._java.org.apache.iceberg.spark.actions.SparkActions.get(self.spark._jsparkSession)

    def _write(self, view: str, partitions: Sequence[str], properties: Mapping[str, str]) -> Any:
        writer = self.spark.table(view).writeTo(self._name)
        for key, value in {**_PROPERTIES, **properties}.items():
            writer = writer.tableProperty(key, value)
        return writer.partitionedBy(*(sql.col(identifier(name)) for name in partitions)) if partitions else writer

    def _load(self) -> Any:
        """Return the table in Java, as of now."""
        return self._java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, self._name)

    def _type(self, kind: str) -> Any:
        """Return the Iceberg type, in Java, of an SQL type."""
        sql_type = self._java.org.apache.spark.sql.types.DataType.fromDDL(kind)
        return self._java.org.apache.iceberg.spark.SparkSchemaUtil.convert(sql_type)


def _note(table: Any, text: str) -> None:
    """Commit a text, with a snapshot that has no new files, to a table or transaction."""
    table.newFastAppend().set(_TEXT, text).commit()

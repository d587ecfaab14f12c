"""One micro-batch: parse → check → for each table: follow its schema, append to its change log, merge its mirror.

A batch that is run again, after a crash at any point of it, finds which of its commits the Delta tables have already
and makes only the others.
"""

import logging
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from databus.errors import DatabusError, SchemaMismatch
from databus.events import Action, Table
from databus.metrics import SINK_BATCHES, SINK_ROWS
from databus.settings import Settings
from databus_binlog import Position
from databus_spark_sink import decode, lake, mirror
from databus_spark_sink.columns import METADATA, Columns, change_log_entries, lake_columns, literal
from databus_spark_sink.decode import Statement, Version
from databus_spark_sink.lake import Lake
from databus_spark_sink.offsets import Beginning

log = logging.getLogger("databus.sink")

#: commits that one batch may make to one mirror
_STEPS = 1000


class Batches:
    """Applies micro-batches to the lake."""

    def __init__(self, settings: Settings, place: Lake, beginning: Beginning) -> None:
        self._settings = settings
        self._place = place
        self._after = beginning.manifest.position or Position()
        self._passed = beginning.passed
        self._warned: set[str] = set()
        #: why the last batch was given up: Spark itself hands on no more than the text
        self.failure: DatabusError | None = None

    def apply(self, records: DataFrame, batch: int) -> None:
        """Apply one micro-batch. Raises SchemaMismatch where it cannot go on."""
        parsed = decode.messages(records, self._after, self._passed).persist()
        try:
            for (schema, name), versions in decode.versions(parsed).items():
                if lake.belongs(self._settings, schema, name):
                    self._apply_table(parsed, batch, versions)
            SINK_BATCHES.inc()
        except DatabusError as error:
            self.failure = error
            raise
        finally:
            parsed.unpersist()

    def _apply_table(self, parsed: DataFrame, batch: int, versions: Sequence[Version]) -> None:
        spark, table = parsed.sparkSession, versions[-1].table
        changes = self._place.changes(table.schema, table.name)
        current = self._place.mirror(table.schema, table.name)
        # It is as old as the checkpoint, which counts the batches: the two together never come again.
        query = str(spark.sparkContext.getLocalProperty("sql.streaming.queryId"))

        statements = sorted((s for version in versions for s in version.statements), key=lambda s: s.offset)
        emptied = mirror.emptied(statements, absent=_absent(spark, changes, versions, statements))
        mirrored = lake.exists(spark, current) or (emptied.born and mirror.has_keys(versions, emptied.since))
        into = _follow_schema(spark, versions, changes, current if mirrored else None)
        entries = _entries(parsed, versions, into)
        with lake.once(spark, query, batch):
            entries.write.format("delta").mode("append").save(str(changes))
        SINK_ROWS.inc(sum(version.images for version in versions))
        if not mirrored:
            return self._warn_once(table)
        _report_misfits(entries, table)
        for number, step in enumerate(mirror.steps(versions, emptied.since)):
            with lake.once(spark, query, batch * _STEPS + number):
                mirror.merge(current, entries, step)
        return None

    def _warn_once(self, table: Table) -> None:
        name = f"{table.schema}.{table.name}"
        if name in self._warned:
            return
        self._warned.add(name)
        reason = "it is not in the dump" if table.primary_key else "it has no primary key"
        log.warning("%s: %s, so it gets a change log and no mirror", name, reason)


def _absent(spark: SparkSession, changes: Path, versions: Sequence[Version], statements: Sequence[Statement]) -> bool:
    """Say whether the table did not exist when this batch began, for all that is known from its change log."""
    if not any(statement.action is Action.CREATE for statement in statements):
        return False
    first = versions[0].first
    if not lake.exists(spark, changes):
        return statements[0].action is Action.CREATE and statements[0].offset == first
    history = spark.read.format("delta").load(str(changes))
    fate = history.where(sql.col("_action").isin("create", "drop") & (sql.col("_offset") < first))
    last = fate.orderBy(sql.desc("_offset")).select("_action").head()
    return last is not None and last[0] == "drop"


def _follow_schema(spark: SparkSession, versions: Sequence[Version], changes: Path, current: Path | None) -> Columns:
    """Make the tables hold every schema in the batch; give the columns they have in common."""
    into: Columns = {}
    for version in versions:
        columns = lake_columns(version.table)
        if clash := METADATA.keys() & {column.lower() for column in columns}:
            name = f"{version.table.schema}.{version.table.name}"
            raise SchemaMismatch(
                f"{name}: column {clash.pop()} has a name of the change log's own; "
                "leave the table out of spark.tables, or rename the column"
            )
        # The mirror first: a change log without one says that there shall be none.
        if current:
            lake.follow(spark, current, columns)
        into = lake.follow(spark, changes, METADATA | columns)
    return {name: kind for name, kind in into.items() if name not in METADATA}


def _entries(parsed: DataFrame, versions: Sequence[Version], into: Columns) -> DataFrame:
    parts = (
        change_log_entries(parsed.where(sql.col("version") == version.key), version.table, into) for version in versions
    )
    return reduce(DataFrame.unionByName, parts)


def _report_misfits(entries: DataFrame, table: Table) -> None:
    """Log how many row images have a value that is NULL in the mirror because its type cannot hold it.

    Raises SchemaMismatch if it is a part of the primary key: different rows would become one.
    """
    names = (literal(table.columns[place].name) for place in table.primary_key)
    in_key = " or ".join(f"map_contains_key(_original, {name})" for name in names) or "false"
    misfits = entries.where("_original is not null")
    count, keys = misfits.agg(sql.count("*"), sql.expr(f"count_if({in_key})")).collect()[0]
    name = f"{table.schema}.{table.name}"
    if keys:
        raise SchemaMismatch(
            f"{name}: a primary key holds a value that the lake's types cannot (a zero date?): "
            "leave the table out of spark.tables"
        )
    if count:
        log.warning(
            "%s: %d row images hold values the lake's types cannot: NULL in the mirror, "
            "their text is in _original of the change log",
            name,
            count,
        )

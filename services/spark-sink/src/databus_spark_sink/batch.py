"""One micro-batch: parse → check → for each table: evolve the schema, append to the change log, merge into the mirror.

Spark repeats a batch that was interrupted. Delta then skips the commits that its tables already have.
"""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from databus.errors import DatabusError, SchemaMismatch
from databus.events import Action, Table, full_name
from databus.log_events import LogEvent
from databus.logs import bound, get_logger
from databus.metrics import SINK_BATCHES, SINK_ROWS
from databus.settings import Settings
from databus_binlog import Position
from databus_spark_sink import decode, lake, mirror
from databus_spark_sink.columns import METADATA, Columns, change_log_entries, lake_columns, literal
from databus_spark_sink.decode import DdlRecord, SchemaVersion
from databus_spark_sink.lake import LakeLayout
from databus_spark_sink.offsets import StartingDump

log = get_logger(__name__)

#: Commits to a mirror are numbered (see `lake.idempotent`): batch N has this many numbers, from N × `_MAX_STEPS` on.
#: It needs far fewer.
_MAX_STEPS = 1000


class LakeWriter:
    """Writes micro-batches to the lake."""

    def __init__(self, settings: Settings, layout: LakeLayout, dump: StartingDump) -> None:
        self._settings = settings
        self._layout = layout
        #: the dump contains all changes up to this position
        self._after = dump.manifest.position or Position()
        self._passed = dump.passed
        #: tables for which a missing mirror was logged
        self._warned: set[str] = set()
        #: the error of the batch that failed; Spark passes on only its text
        self.failure: DatabusError | None = None

    def apply(self, records: DataFrame, batch: int) -> None:
        """Write one micro-batch. Raises SchemaMismatch for a message or a table that it cannot write."""
        parsed = decode.parse_messages(records, self._after, self._passed).persist()
        try:
            for (schema, name), versions in decode.schema_versions(parsed).items():
                if lake.belongs(self._settings, schema, name):
                    with bound(table=full_name(schema, name)):
                        self._apply_table(parsed, batch, versions)
            SINK_BATCHES.inc()
        except DatabusError as error:
            self.failure = error
            raise
        finally:
            parsed.unpersist()

    def _apply_table(self, parsed: DataFrame, batch: int, versions: Sequence[SchemaVersion]) -> None:
        spark, table = parsed.sparkSession, versions[-1].table
        changes = self._layout.changes(table.schema, table.name)
        current = self._layout.mirror(table.schema, table.name)
        # The checkpoint stores the query's id and counts the batches, so the two identify a batch across restarts.
        query = str(spark.sparkContext.getLocalProperty("sql.streaming.queryId"))

        ddl = sorted((record for version in versions for record in version.ddl), key=lambda record: record.offset)
        reset = mirror.find_reset(ddl, absent=_is_absent(spark, changes, versions, ddl))
        mirrored = lake.exists(spark, current) or (reset.created and mirror.has_keys(versions, reset.offset))
        into = _evolve_schema(spark, versions, changes, current if mirrored else None)
        entries = _entries(parsed, versions, into)
        with lake.idempotent(spark, query, batch):
            entries.write.format("delta").mode("append").save(str(changes))
        SINK_ROWS.inc(sum(version.images for version in versions))
        if not mirrored:
            return self._warn_without_mirror(table)
        _report_unrepresentable(entries, table)
        for number, step in enumerate(mirror.merge_steps(versions, reset.offset)):
            with lake.idempotent(spark, query, batch * _MAX_STEPS + number):
                mirror.merge(current, entries, step)
        return None

    def _warn_without_mirror(self, table: Table) -> None:
        name = table.full_name
        if name in self._warned:
            return
        self._warned.add(name)
        reason = "it is not in the dump" if table.primary_key else "it has no primary key"
        log.warning(LogEvent.TABLE_NOT_MIRRORED, f"{name} gets a change log and no mirror: {reason}")


def _is_absent(spark: SparkSession, changes: Path, versions: Sequence[SchemaVersion], ddl: Sequence[DdlRecord]) -> bool:
    """Return whether the batch creates the table and the table did not exist before.

    The change log shows whether the table existed. Without one, the table's first message in the batch shows it: the
    table did not exist if this is CREATE.
    """
    if not any(record.action is Action.CREATE for record in ddl):
        return False
    first = versions[0].first
    if not lake.exists(spark, changes):
        return ddl[0].action is Action.CREATE and ddl[0].offset == first
    history = spark.read.format("delta").load(str(changes))
    creations = history.where(sql.col("_action").isin("create", "drop") & (sql.col("_offset") < first))
    last = creations.orderBy(sql.desc("_offset")).select("_action").head()
    return last is not None and last[0] == "drop"


def _evolve_schema(
    spark: SparkSession, versions: Sequence[SchemaVersion], changes: Path, current: Path | None
) -> Columns:
    """Add the columns of all schemas in the batch to change log and mirror.

    Returns the columns of the change log without its metadata columns.
    """
    into: Columns = {}
    for version in versions:
        columns = lake_columns(version.table)
        if clash := METADATA.keys() & {column.lower() for column in columns}:
            raise SchemaMismatch(
                f"table {version.table.full_name}: column {clash.pop()} has the name of a metadata column of the "
                "change log: leave the table out of spark.tables, or rename the column"
            )
        # The mirror first: a change log without a mirror, left by a crash in between, would mean "not mirrored".
        if current:
            lake.evolve(spark, current, columns)
        into = lake.evolve(spark, changes, METADATA | columns)
    return {name: kind for name, kind in into.items() if name not in METADATA}


def _entries(parsed: DataFrame, versions: Sequence[SchemaVersion], into: Columns) -> DataFrame:
    parts = (
        change_log_entries(parsed.where(sql.col("version") == version.key), version.table, into) for version in versions
    )
    return reduce(DataFrame.unionByName, parts)


def _report_unrepresentable(entries: DataFrame, table: Table) -> None:
    """Log how many row images have a value that the lake's type cannot represent; it is NULL in the mirror.

    Raises SchemaMismatch if the value is part of the primary key, because different rows would become one.
    """
    names = (literal(table.columns[index].name) for index in table.primary_key)
    in_key = " or ".join(f"map_contains_key(_original, {name})" for name in names) or "false"
    affected = entries.where("_original is not null")
    count, keys = affected.agg(sql.count("*"), sql.expr(f"count_if({in_key})")).collect()[0]
    name = table.full_name
    if keys:
        raise SchemaMismatch(
            f"table {name}: a primary key value, for instance a zero date, cannot be represented in the lake's type: "
            "leave the table out of spark.tables"
        )
    if count:
        advice = "they are NULL in the mirror, and their text is in _original of the change log"
        log.warning(
            LogEvent.VALUES_NOT_MIRRORED,
            f"rows of {name} have values that the lake's types cannot hold: {advice}",
            rows=count,
        )

"""The changes of one table as a typed DataFrame, from its topic or from a lake's change log."""

from functools import partial
from typing import overload

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from databus_changes.tables import TableName
from databus_core.definitions import decode_definition
from databus_core.errors import InvalidSettings
from databus_core.kafka_ends import Offsets
from databus_core.settings import Kafka
from databus_spark.alignment import align
from databus_spark.blocking import wait_for
from databus_spark.changelog import ChangeLog
from databus_spark.layout import Layout
from databus_spark.local_rows import local_rows
from databus_spark.messages import decode_messages, explode_images
from databus_spark.records import records_of
from databus_spark.topic import find_definition, read_range
from databus_spark.types import DEFAULT_TYPES, TypeOptions, lake_columns, literal, typed_cells

#: columns beside those of the table → their SQL
COLUMNS = {name: name for name in ("_seq", "_action", "_row", "_query", "_topic", "_partition", "_offset", "_time")} | {
    "_definition": "if(_row is null, _definition, null)"
}
#: in the metadata of `_seq`: the definition of the columns, as in messages
DEFINITION = "databus.definition"


@overload
def read_changes(
    spark: SparkSession,
    *,
    table: str,
    topic: str,
    kafka: Kafka,
    start: Offsets | None = None,
    end: Offsets | None = None,
    stream: bool = False,
    types: TypeOptions = ...,
) -> DataFrame: ...


@overload
def read_changes(spark: SparkSession, *, table: str, lake: str, types: TypeOptions = ...) -> DataFrame: ...


def read_changes(
    spark: SparkSession,
    *,
    table: str,
    topic: str = "",
    kafka: Kafka | None = None,
    start: Offsets | None = None,
    end: Offsets | None = None,
    stream: bool = False,
    lake: str = "",
    types: TypeOptions = DEFAULT_TYPES,
) -> DataFrame:
    """Return the changes of a table, `schema.table`: each row image and each statement, in no order.

    They come from a topic in the `databus` format, or, only as a batch, from the change log of a lake. The columns are
    those of the table, in the types of docs/reference/lake.md (`types`: as the settings `spark.types`), and

    * `_seq`: the sequence. `ORDER BY _seq, _row` gives the order of the changes in one partition.
    * `_action`: `insert`, `update_before`, `update_after`, `delete`; `create`, `alter`, `drop`, `truncate`
    * `_row`: ordinal of the row image in its record; NULL for a statement
    * `_query`, `_definition`: text of a statement, and the definition of the table after it, as in messages
    * `_topic`, `_partition`, `_offset`, `_time`: the Kafka record. Each partition has a copy of a statement.

    A batch has the committed records from `start` (by default the first) to before `end` (by default the end at this
    call), so it has the same rows each time it is used. Where `start` or `end` do not name a topic or a partition, the
    default counts. With `stream` it is a streaming DataFrame; a query that has a checkpoint ignores `start`.

    The columns are those of the table's newest record at this call, before `end`. In rows of other definitions columns
    are found by name: a missing one is NULL, and one that is not known is left out. The query fails, and names the
    record, at a row whose values the types do not represent unchanged, at one of another primary key, and at a record
    that cannot be used.

    Raises InvalidSettings, ChangesLost if Kafka has deleted `start`, and KafkaUnavailable.
    """
    schema, _, name = table.partition(".")
    if lake:
        return _from_lake(spark, (schema, name), lake, types)
    if kafka is None or not topic:
        raise InvalidSettings("read_changes needs topic and kafka, or lake")
    if stream and end is not None:
        raise InvalidSettings("read_changes: a stream has no end")
    find = partial(find_definition, table=(schema, name))
    found = wait_for(read_range(kafka, topic, find, f"record of table {table}", start, end, check=not stream))
    return changes_in(records_of(spark, kafka, found.starts, found.ends, stream=stream), found.newest, types)


def changes_in(records: DataFrame, definition: str, types: TypeOptions) -> DataFrame:
    """Return the changes of a table in Kafka records, as `read_changes` does.

    `definition` is that of the columns, as in messages.
    """
    table = decode_definition(definition)
    messages = decode_messages(records, -1, -1)
    mine = f"_schema <=> {literal(table.schema)} and _table <=> {literal(table.name)}"
    # of a record that cannot be used, the table may not be known
    unknown = "action = 'invalid' and (_schema is null or _table is null)"
    aligned = align(messages.where(f"{mine} or {unknown}"), table, definition, types)
    return _typed(explode_images(aligned), definition, types)


def _from_lake(spark: SparkSession, name: TableName, lake: str, types: TypeOptions) -> DataFrame:
    log = ChangeLog(spark, Layout(lake).changes)
    if not log.exists:
        raise InvalidSettings(f"there is no change log in {lake}: check the URL")
    schema, table = map(literal, name)
    entries = log.as_of_now().where(f"_schema = {schema} and _table = {table}")
    versions = entries.groupBy("_version").agg(sql.max("_seq").alias("last"), sql.max("_definition").alias("text"))
    known = versions.where("text is not null").orderBy("last").collect()
    if not known:
        raise InvalidSettings(f"the change log in {lake} has no change of table {'.'.join(name)}: check the name")
    rows = [{"_version": each["_version"], "_definition": each["text"]} for each in known]
    definitions = sql.broadcast(local_rows(spark, rows, "_version bigint, _definition string"))
    with_definition = entries.drop("_definition").join(definitions, "_version", "left")
    # an entry becomes a message with one image, or a statement
    images = sql.expr("if(_row is null, null, array(cells))")
    messages = with_definition.withColumnRenamed("_action", "action").withColumn("images", images)
    newest = known[-1]["text"]
    aligned = align(messages, decode_definition(newest), newest, types).withColumnRenamed("action", "_action")
    return _typed(aligned.withColumn("cells", sql.col("images")[0]), newest, types)


def _typed(entries: DataFrame, definition: str, types: TypeOptions) -> DataFrame:
    table = decode_definition(definition)
    return as_changes(entries, typed_cells(table, lake_columns(table, types), types), definition)


def as_changes(entries: DataFrame, columns: list[str], definition: str) -> DataFrame:
    """Select the columns of the table, whose SQL is given, and those that all changes have."""
    table = decode_definition(definition)
    if reserved := sorted({column.name.lower() for column in table.columns} & COLUMNS.keys()):
        raise InvalidSettings(f"{table.full_name} has a column {reserved[0]}, a name that the changes use")
    rows = entries.selectExpr(*columns, *(f"{text} as {name}" for name, text in COLUMNS.items()))
    return rows.withColumn("_seq", sql.col("_seq").alias("_seq", metadata={DEFINITION: definition}))

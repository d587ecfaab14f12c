"""The changes of one table as a typed DataFrame, from the topic of a Debezium connector.

As with the `databus` format, no row passes through Python, each message is parsed once, and its parts become columns
of their own before its rows are exploded (`databus_spark.messages`). Only records with another schema than the newest
one are parsed a second time, for their schema.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from databus_core.errors import InvalidSettings
from databus_core.kafka_ends import Offsets
from databus_core.settings import Kafka
from databus_spark.alignment import ADVICE, PLACE, texts
from databus_spark.blocking import wait_for
from databus_spark.changes import as_changes
from databus_spark.debezium_schema import ENABLE_SCHEMAS, Newest, find_newest
from databus_spark.debezium_types import Field, converted, fits, parsed_fields
from databus_spark.records import records_of
from databus_spark.topic import read_range
from databus_spark.types import DEFAULT_TYPES, TypeOptions, identifier, literal

_ENVELOPE = (
    "payload struct<before: {0}, after: {0}, source: struct<db: string, `table`: string>, op: string>, _corrupt string"
)
_FIELDS = "array<struct<field: string, type: string, name: string, parameters: map<string, string>>>"
_SCHEMA = f"schema struct<fields: array<struct<field: string, fields: {_FIELDS}>>>"
_KEY = "schema struct<fields: array<struct<field: string>>>"
#: why a record ends the query → SQL condition; the first that is true counts
_FAULTS = {
    f"' cannot be used: it has no schema: {ENABLE_SCHEMAS}'": "_other is not null and size(_other) = 0",
    "' is a change of the table ', _db, '.', _table, ', but the newest one is of ', {newest}, "
    "': read a topic that has only one table'": "_db <> {db} or _table <> {name}",
    f"': the table has another definition of ', _misfits, ': {ADVICE}'": "_misfits <> ''",
    "' cannot be used: it has a value that does not fit its schema: leave the record out, by its offset'": (
        "_corrupt is not null"
    ),
    "' cannot be used: it is not a change of rows: leave the record out, by its offset'": (
        "not coalesce(_op in ('c', 'r', 'u', 'd', 't') and _db is not null and _table is not null, false)"
    ),
    "' is a TRUNCATE, whose order in other partitions is not known: remove the copy, and begin with a new snapshot'": (
        "_op = 't' and {partitions} > 1"
    ),
    "' cannot be used: it lacks a row image: leave the record out, by its offset'": (
        "_op in ('c', 'r', 'u') and _after is null or _op = 'd' and _before is null"
    ),
}
_IMAGE = "named_struct('_row', {}, '_action', '{}', 'image', {})".format
_AFTER = _IMAGE(1, "update_after", "_after")
_IMAGES = f"""
    case
        when _fault is not null then raise_error(_fault)
        when _op = 't' then array({_IMAGE("cast(null as int)", "truncate", "_after")})
        when _op = 'd' then array({_IMAGE(0, "delete", "_before")})
        when _op <> 'u' then array({_IMAGE(0, "insert", "_after")})
        when _before is null then array({_AFTER})
        else array({_IMAGE(0, "update_before", "_before")}, {_AFTER})
    end
"""


def read_debezium_changes(
    spark: SparkSession,
    *,
    topic: str,
    kafka: Kafka,
    start: Offsets | None = None,
    end: Offsets | None = None,
    stream: bool = False,
    types: TypeOptions = DEFAULT_TYPES,
) -> DataFrame:
    """Return the changes of a table from a topic of a Debezium connector for MySQL or MariaDB: each row image.

    The topic has JSON with schemas, as the connector or a route in the format `debezium-json` writes it. Parameters,
    columns and errors are those of `read_changes`, and `apply_changes` takes the result, but

    * `_seq` is the offset of the record: it orders the changes of a row if they are in one partition, and not those of
      several partitions. So the record key must identify a row and choose the partition, as it does by default. The
      number of partitions must not change, and a topic that is created again has lower offsets.
    * `_action` is `insert`, `update_before`, `update_after` or `delete`; or `truncate`, which ends the query if the
      topic has several partitions. There is no other DDL. An update without `before` has only `update_after`.
    * columns have the types of their schemas in Connect (docs/guide/spark.md); `types.zero_dates` has no effect.

    Columns and primary key are those of the topic's newest row at this call, before `end`, by the record's time. The
    query fails, and names the record, also at a record of another table, one that is not a change of rows, a value
    that does not fit its schema, and one that the binlog did not have. Tombstones are skipped.

    Raises InvalidSettings, also for records without schemas and for a column that Spark has no type for, ChangesLost
    if Kafka has deleted `start`, and KafkaUnavailable.
    """
    if stream and end is not None:
        raise InvalidSettings("read_debezium_changes: a stream has no end")
    what = "change of a row that a Debezium connector wrote"
    found = wait_for(read_range(kafka, topic, find_newest, what, start, end, check=not stream))
    records = records_of(spark, kafka, found.starts, found.ends, stream=stream)
    return debezium_changes_in(records, found.newest, types, partitions=len(found.ends[topic]))


def debezium_changes_in(records: DataFrame, newest: Newest, types: TypeOptions, *, partitions: int) -> DataFrame:
    """Return the changes of a table in Kafka records, as `read_debezium_changes` does.

    `newest` describes the columns, and `partitions` is the number of partitions that the topic has.
    """
    definition = newest.definition(types)
    facts = {
        "newest": literal(f"{newest.schema}.{newest.name}"),
        "db": literal(newest.schema),
        "name": literal(newest.name),
        "partitions": partitions,
    }
    faults = " ".join(
        f"when {fault.format(**facts)} then concat({PLACE}, {text.format(**facts)})" for text, fault in _FAULTS.items()
    )
    checked = _parsed(records, newest, types).withColumn("_fault", sql.expr(f"case {faults} end"))
    # For a generator that is not an outer one, Spark would add a filter, and compute the images twice.
    entries = checked.withColumn("images", sql.expr(_IMAGES)).selectExpr(
        "_topic",
        "_partition",
        "_offset",
        "_time",
        "lpad(cast(_offset as string), 16, '0') || '-0000000000' as _seq",
        "if(_op = 't', '', null) as _query",
        f"{literal(definition)} as _definition",
        "inline_outer(images)",
    )
    names = [identifier(column.field) for column in newest.columns]
    values = [converted(column, f"image.{name}", types) for column, name in zip(newest.columns, names, strict=True)]
    return as_changes(entries, [f"{value} as {name}" for value, name in zip(values, names, strict=True)], definition)


def _parsed(records: DataFrame, newest: Newest, types: TypeOptions) -> DataFrame:
    """Parse records into the parts of the envelope, and `_misfits`, which names what another schema has differently."""
    value, key = "cast(value as string)", "cast(key as string)"
    fields = f"get(filter(from_json({value}, '{_SCHEMA}').schema.fields, f -> f.field = 'after'), 0).fields"
    other = (
        f"if(startswith({value}, {literal(newest.value_head)}), null, coalesce({fields}, cast(array() as {_FIELDS})))"
    )
    same_key = f"startswith({key}, {literal(newest.key_head)})" if newest.key else "key is null"
    other_key = f"if({same_key}, null, coalesce(from_json({key}, '{_KEY}').schema.fields.field, {texts(())}))"
    names = texts(column.field for column in newest.columns)
    envelope = _ENVELOPE.format(parsed_fields(newest.columns, types))
    differs = [
        f"if(_other is null or {_fits(column, index, types)}, null, {literal(column.field)})"
        for index, column in enumerate(newest.columns)
    ]
    differs.append(f"if(_other_key is null or _op = 't' or _other_key = {texts(newest.key)}, null, 'the primary key')")
    return (
        records.where("value is not null")
        .select(
            sql.col("topic").alias("_topic"),
            sql.col("partition").alias("_partition"),
            sql.col("offset").alias("_offset"),
            sql.col("timestamp").alias("_time"),
            sql.expr(other).alias("_other"),
            sql.expr(other_key).alias("_other_key"),
            sql.from_json(sql.expr(value), envelope, {"columnNameOfCorruptRecord": "_corrupt"}).alias("m"),
        )
        .selectExpr(
            "* except (m)",
            f"if(_other is null, null, transform({names}, n -> get(filter(_other, f -> f.field = n), 0))) as _theirs",
            "transform(_other, f -> lower(f.field)) as _lower",
            "m.payload.source.db as _db",
            "m.payload.source.`table` as _table",
            "m.payload.op as _op",
            "m.payload.before as _before",
            "m.payload.after as _after",
            "m._corrupt as _corrupt",
        )
        .selectExpr(
            "*",
            f"if(_other is null and _other_key is null, '', array_join(array({', '.join(differs)}), ', ')) as _misfits",
        )
    )


def _fits(column: Field, index: int, types: TypeOptions) -> str:
    """Build the SQL condition of whether a record with another schema has the values of a column, or lacks it."""
    # A name in another case would not be found in the payload.
    lacks = f"not array_contains(_lower, {literal(column.field.lower())})"
    return f"if(get(_theirs, {index}) is null, {lacks}, {fits(column, f'get(_theirs, {index})', types)})"

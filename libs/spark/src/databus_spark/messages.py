"""Decodes messages in the `databus` format, and dumps, with Spark's functions, so that no row passes through Python.

Cells are binary in the JSON schema: Spark's JSON reader decodes base64 into binary columns by itself. Each message is
parsed once, and its parts become columns of their own before its rows are exploded: a field of a struct that is used
beside an exploded array would carry the whole message into every row.
"""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, StructField, StructType

from databus_core import names
from databus_core.events import Table
from databus_spark.sequences import last_of
from databus_spark.types import identifier

#: the members of a message that are parsed for each message; the definition of the table is kept as text
_MESSAGE = (
    "Table struct<Schema: string, Name: string, Columns: array<struct<Name: string, RawType: string>>>, "
    "Action string, Query binary, Rows array<array<binary>>, _corrupt string"
)
_KEY = "Pos struct<Name: string, Pos: bigint>"
#: puts the text of a message that does not fit the schema into `_corrupt`; without this, its fields would just be NULL
_REPORT_CORRUPT = {"columnNameOfCorruptRecord": "_corrupt"}
#: `Table` is the first member, and this follows it; no JSON string contains it, because quotes are escaped there
_BEFORE_TABLE, _AFTER_TABLE = '{"Table":', ',"Action":"'
#: a length that no text exceeds
_TO_END = 2**31 - 1

_ROWS = "'insert', 'update', 'delete'"
_STATEMENTS = "'alter', 'create', 'drop', 'truncate'"
_SEQUENCE = "^[0-9]{16}-[0-9]{10}$"
#: why a record cannot be used that no publisher has written
FOREIGN = "it was not written by the publisher: the header databus.sequence is missing"
#: why a record cannot be used → SQL condition, `{after}` stands for a sequence; the first that is true counts
FAULTS = {
    FOREIGN: (f"_seq is null or not _seq rlike '{_SEQUENCE}'"),
    "it came after newer changes, as a replayed dead letter does": "_seq <= '{after}'",
    "it is not in the databus format": (
        "m is null or m._corrupt is not null or m.Table.Schema is null or m.Table.Name is null "
        "or m.Table.Columns is null or exists(m.Table.Columns, c -> c.Name is null or c.RawType is null) "
        f"or _definition is null or not startswith(cast(value as string), '{_BEFORE_TABLE}{{') "
        "or pos.Name is null or pos.Pos is null "
        f"or not coalesce(m.Action in ({_ROWS}) and m.Rows is not null and m.Query is null "
        f"or m.Action in ({_STATEMENTS}) and m.Rows is null and m.Query is not null, false)"
    ),
    "its rows lack values, or images of an update": (
        "m.Rows is not null and (exists(m.Rows, row -> row is null or size(row) <> size(m.Table.Columns)) "
        "or m.Action = 'update' and size(m.Rows) % 2 = 1)"
    ),
}


def decode_records(records: DataFrame, after: int, last: int) -> DataFrame:
    """Decode Kafka records, read with their headers, to entries of a change log (`databus_spark.changelog`).

    The log gets the entries after transaction `after`, up to and with transaction `last`. Each row image is an entry,
    and each statement. A record that cannot be used is one entry, with the action `invalid` and the reason as its
    query; if it has no usable sequence, it gets the last one of the transaction `last`.
    """
    return explode_images(decode_messages(records, after, last))


def decode_messages(records: DataFrame, after: int, last: int) -> DataFrame:
    """Decode Kafka records to rows of one message each, which `explode_images` turns into entries.

    The row images are in `images`, NULL for a statement.
    """
    parsed = records.select(
        sql.col("topic").alias("_topic"),
        sql.col("partition").alias("_partition"),
        sql.col("offset").alias("_offset"),
        sql.col("timestamp").alias("_time"),
        sql.expr(header(names.SEQUENCE_HEADER)).alias("_seq"),
        "key",
        "value",
        sql.from_json(sql.col("key").cast("string"), _KEY)["Pos"].alias("pos"),
        sql.from_json(sql.col("value").cast("string"), _MESSAGE, _REPORT_CORRUPT).alias("m"),
        _definition_text(sql.col("value").cast("string")).alias("_definition"),
    )
    faults = " ".join(f"when {fault} then '{reason}'" for reason, fault in FAULTS.items())
    checked = parsed.withColumn("fault", sql.expr(f"case {faults} end".replace("{after}", last_of(after))))
    return checked.selectExpr(
        "_topic",
        "_partition",
        "_offset",
        "_time",
        f"if(coalesce(_seq rlike '{_SEQUENCE}' and _seq > '{last_of(after)}', false), _seq, '{last_of(last)}') as _seq",
        "fault",
        "pos.Name as _file",
        "pos.Pos as _position",
        "m.Table.Schema as _schema",
        "m.Table.Name as _table",
        "if(fault is null, _definition, null) as _definition",
        "if(fault is null, xxhash64(_definition), null) as _version",
        "if(fault is null, m.Action, 'invalid') as action",
        "coalesce(fault, cast(m.Query as string)) as _query",
        "if(fault is null, m.Rows, array(array(key, value))) as images",
    )


def header(name: str) -> str:
    """Build the SQL expression of a record's header as text; it is NULL if there is no such header."""
    # Not `filter`, for whose lambda Spark generates no code. array_position is 0 if there is no such header.
    return f"cast(get(headers.value, cast(array_position(headers.key, '{name}') as int) - 1) as string)"


def explode_images(messages: DataFrame) -> DataFrame:
    """Turn messages into entries of a change log."""
    # An outer explode keeps statements, which have no rows.
    return messages.select("*", sql.posexplode_outer("images").alias("_row", "cells")).selectExpr(
        "_seq",
        "_schema",
        "_table",
        "if(action = 'update', if(_row % 2 = 0, 'update_before', 'update_after'), action) as _action",
        "_row",
        "_query",
        "cells",
        "_version",
        "if(coalesce(_row, 0) = 0, _definition, null) as _definition",
        "_file",
        "_position",
        "_topic",
        "_partition",
        "_offset",
        "_time",
        "cast(_time as date) as _day",
    )


def decode_dump_lines(spark: SparkSession, files: list[str]) -> DataFrame:
    """Decode the lines of a dump's files to rows with the column `cells`."""
    parsed = spark.read.text(files).select(sql.from_json("value", "Rows array<array<binary>>").alias("m"))
    return parsed.select(sql.explode("m.Rows").alias("cells"))


def decode_dump_parquet(spark: SparkSession, files: list[str], table: Table) -> DataFrame:
    """Read a dump's Parquet files to rows with the column `cells`: each column of the table has its cells' text."""
    if not files:
        return spark.sql("SELECT cast(null as array<binary>) as cells WHERE false")
    schema = StructType([StructField(column.name, BinaryType()) for column in table.columns])
    rows = spark.read.schema(schema).parquet(*files)
    return rows.select(sql.array(*(identifier(column.name) for column in table.columns)).alias("cells"))


def _definition_text(value: Column) -> Column:
    """Return the text of the definition, NULL if nothing follows it as in the messages of the publisher.

    `contains` looks at most bytes once; `instr`, in the condition and again in the branch, would compare the whole text
    at each of them. The start is cut off in bytes, because counting characters takes longer.
    """
    head = sql.substring_index(value, _AFTER_TABLE, 1).cast("binary")
    text = sql.substring(head, len(_BEFORE_TABLE) + 1, _TO_END).cast("string")
    return sql.when(sql.contains(value, sql.lit(_AFTER_TABLE)), text)

"""Parse `databus` messages with Spark's own functions, so that no row passes through Python.

Cells are binary in the JSON schema: Spark's JSON reader decodes base64 into binary columns by itself.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from databus.errors import SchemaMismatch
from databus.events import Action, Column, Table
from databus_binlog import Position
from databus_spark_sink.columns import literal
from databus_spark_sink.offsets import Offsets

_VALUE = (
    "Table struct<Schema: string, Name: string, PKColumns: array<int>, "
    "Columns: array<struct<Name: string, RawType: string, EnumValues: array<string>, SetValues: array<string>>>>, "
    "Action string, Query binary, Rows array<array<binary>>, _corrupt string"
)
_KEY = "Pos struct<Name: string, Pos: bigint>"
#: schema and name of a table
Name: TypeAlias = tuple[str, str]

#: puts the text of a message that does not fit the schema into `_corrupt`; without this, its fields would just be NULL
_REPORT_CORRUPT = {"columnNameOfCorruptRecord": "_corrupt"}

_INVALID = "not a message in the databus format (check publisher.format and publisher.topic)"
_PARTIAL = (
    "a change without all values of its row, which the sink cannot merge: set binlog_row_image=FULL on the server and "
    "publisher.publish_partial=false, then remove the lake to start from a new dump"
)

_ROW_ACTIONS = (Action.INSERT, Action.UPDATE, Action.DELETE)
_DDL_ACTIONS = (Action.ALTER, Action.CREATE, Action.DROP, Action.TRUNCATE)

_VALID = f"""
    m is not null and m._corrupt is null
    and m.Table.Schema is not null and m.Table.Name is not null and m.Table.Columns is not null
    and case
        when m.Action in {tuple(map(str, _ROW_ACTIONS))} then
            m.Rows is not null and (m.Action <> 'update' or size(m.Rows) % 2 = 0)
            and forall(m.Rows, row -> row is not null and size(row) = size(m.Table.Columns))
        when m.Action in {tuple(map(str, _DDL_ACTIONS))} then m.Query is not null
        else false end"""

#: in a message, a value that the binlog lacks (`publisher.publish_partial`)
_ABSENT_VALUE = r'"Rows":\[.*[\[,]false[,\]]'


@dataclass(frozen=True)
class DdlRecord:
    """A record with a DDL statement."""

    #: the record's offset in Kafka
    offset: int
    action: Action


@dataclass(frozen=True)
class SchemaVersion:
    """One schema of a table, and the messages of a batch that have it."""

    table: Table
    #: column `version` of its messages
    key: str
    #: Kafka offset of the first message
    first: int
    #: Kafka offset of the last message
    last: int
    #: number of row images
    images: int
    ddl: tuple[DdlRecord, ...]


def parse_messages(records: DataFrame, after: Position, passed: Offsets | None = None) -> DataFrame:
    """Parse Kafka records, and drop those that a dump at position `after` contains.

    A record at or after its partition's offset in `passed` is kept, whatever its position.

    The columns are `_topic`, `_partition`, `_offset`, `_time`, `_file` and `_position` as in the change log, `m` (the
    message), `images` (number of row images), `version` (equal for equal schemas), `valid` (whether the message is in
    the format and has all values; invalid ones are kept), and `partial` (whether it is invalid and may lack values).
    """
    number, offset = file_number(after.file), after.offset
    parsed = records.select(
        sql.col("topic").alias("_topic"),
        sql.col("partition").alias("_partition"),
        sql.col("offset").alias("_offset"),
        sql.col("timestamp").alias("_time"),
        sql.from_json(sql.col("key").cast("string"), _KEY)["Pos"].alias("pos"),
        sql.col("value").cast("string").alias("value"),
        sql.from_json(sql.col("value").cast("string"), _VALUE, _REPORT_CORRUPT).alias("m"),
    )
    located = parsed.select(
        "_topic",
        "_partition",
        "_offset",
        "_time",
        "value",
        "m",
        sql.expr("pos.Name as _file"),
        sql.expr("pos.Pos as _position"),
    ).withColumn("number", sql.expr("try_cast(substring_index(_file, '.', -1) as bigint)"))
    return (
        located.withColumn("valid", sql.expr(f"number is not null and _position is not null and {_VALID}"))
        .where(f"not valid or {_is_after(passed)} or number > {number} or (number = {number} and _position > {offset})")
        .withColumn("images", sql.expr("coalesce(size(m.Rows), 0)"))
        .withColumn("version", sql.expr("md5(to_json(struct(m.Table)))"))
        .withColumn("partial", ~sql.col("valid") & sql.col("value").rlike(_ABSENT_VALUE))
        .drop("number", "value")
    )


def _is_after(passed: Offsets | None) -> str:
    """Build the condition that a record is newer than the dump according to its Kafka offset."""
    if passed is None:
        return "false"
    offsets = literal(msgspec.json.encode(passed).decode())
    known = f"from_json({offsets}, 'map<string, map<string, bigint>>')[_topic][cast(_partition as string)]"
    return f"_offset >= coalesce({known}, 0)"


def parse_dump_lines(spark: SparkSession, files: list[str]) -> DataFrame:
    """Parse the lines of a dump's decompressed files into messages, column `m`."""
    return spark.read.text(files).select(sql.from_json("value", _VALUE, _REPORT_CORRUPT).alias("m"))


def file_number(file: str) -> int:
    """Return the number of a binlog file: 3 for `mysql-bin.000003`."""
    return int(file.rpartition(".")[2])


def schema_versions(parsed: DataFrame) -> dict[Name, list[SchemaVersion]]:
    """List the schemas in a batch for each table, in the order of their first message.

    Raises SchemaMismatch if a message is not in the format, or lacks values.
    """
    found: dict[Name, list[SchemaVersion]] = defaultdict(list)
    groups = parsed.groupBy("version").agg(
        sql.first("m.Table"),
        sql.min("_offset").alias("first"),
        sql.max("_offset"),
        sql.sum("images"),
        sql.expr("sort_array(collect_list(struct(_offset, m.Action)) filter (where m.Query is not null))"),
        sql.expr("min_by(struct(_topic, _partition, _offset, partial), _offset) filter (where not valid)"),
    )
    for key, row, first, last, images, statements, invalid in groups.orderBy("first").collect():
        if invalid:
            where = f"topic {invalid[0]}, partition {invalid[1]}, offset {invalid[2]}"
            raise SchemaMismatch(f"{where}: {_PARTIAL if invalid.partial else _INVALID}")
        table = _table(row)
        ddl = tuple(DdlRecord(offset, Action(action)) for offset, action in statements)
        found[table.schema, table.name].append(SchemaVersion(table, key, first, last, images, ddl))
    return found


def _table(row: Any) -> Table:
    return Table(
        schema=row.Schema,
        name=row.Name,
        columns=tuple(
            Column(
                name=column.Name,
                type="",
                raw_type=column.RawType,
                values=tuple(column.EnumValues or column.SetValues or ()),
            )
            for column in row.Columns
        ),
        primary_key=tuple(row.PKColumns or ()),
    )

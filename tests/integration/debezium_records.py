"""Records as a Debezium connector writes them, and the changes of a table in them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiokafka import ConsumerRecord
from pyspark.sql import DataFrame, SparkSession

from databus_spark import TypeOptions
from databus_spark.debezium import debezium_changes_in
from databus_spark.debezium_schema import find_newest
from databus_spark.types import DEFAULT_TYPES

#: name, type in Connect, and more of the schema
Column = tuple[str, str] | tuple[str, str, dict[str, Any]]
Record = tuple[Any, Any] | tuple[Any, Any, int]

ITEMS: list[Column] = [("id", "int32"), ("name", "string")]


def key(number: int, columns: Sequence[Column] = ITEMS[:1]) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": fields(columns)}, "payload": {"id": number}}


def value(
    operation: str,
    before: Sequence[Any] | None = None,
    after: Sequence[Any] | None = None,
    columns: Sequence[Column] = ITEMS,
    table: str = "items",
) -> dict[str, Any]:
    image = {"type": "struct", "fields": fields(columns), "optional": True}
    schema = {"type": "struct", "fields": [image | {"field": "before"}, image | {"field": "after"}]}
    known = [name for name, *_ in columns]
    rows = (None if row is None else dict(zip(known, row, strict=True)) for row in (before, after))
    payload = dict(zip(("before", "after"), rows, strict=True))
    return {"schema": schema, "payload": payload | {"source": {"db": "shop", "table": table}, "op": operation}}


def fields(columns: Sequence[Column]) -> list[dict[str, Any]]:
    return [{"type": kind, **dict(*more), "field": name} for name, kind, *more in columns]


def encoded(part: Any) -> bytes | None:
    return part if part is None or isinstance(part, bytes) else msgspec.json.encode(part)


def changes(
    spark: SparkSession, *records: Record, types: TypeOptions = DEFAULT_TYPES, partitions: int = 1
) -> DataFrame:
    """Return the changes in records: key, value, and partition. The last row that is not a TRUNCATE is the newest."""
    rows = [
        (encoded(key), encoded(value), "shop.items", sum(partition), offset, datetime(2026, 1, 1, tzinfo=UTC), [])
        for offset, (key, value, *partition) in enumerate(records)
    ]
    found = (find_newest(consumed(*row[:2])) for row in reversed(rows))
    _, newest = next(each for each in found if each)
    return debezium_changes_in(kafka(spark, rows), newest, types, partitions=partitions)


def consumed(key: bytes | None, value: bytes | None) -> ConsumerRecord:
    return ConsumerRecord("shop.items", 0, 0, 5, 0, key, value, None, 0, 0, ())


def kafka(spark: SparkSession, rows: list[Any]) -> DataFrame:
    return spark.createDataFrame(
        rows,
        "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
        "headers array<struct<key string, value binary>>",
    )


def semantic(name: str, **parameters: str) -> dict[str, Any]:
    return {"name": name, "parameters": {key.replace("_", "."): text for key, text in parameters.items()}}


def decimal(precision: int, scale: int) -> tuple[str, dict[str, Any]]:
    digits = {"scale": str(scale), "connect_decimal_precision": str(precision)}
    return "bytes", semantic("org.apache.kafka.connect.data.Decimal", **digits)


def bits(length: int) -> tuple[str, dict[str, Any]]:
    return "bytes", semantic("io.debezium.data.Bits", length=str(length))


def debezium(kind: str, name: str) -> tuple[str, dict[str, Any]]:
    return kind, semantic(f"io.debezium.{name}")


def connect(kind: str, name: str) -> tuple[str, dict[str, Any]]:
    return kind, semantic(f"org.apache.kafka.connect.data.{name}")

"""Reads a batch's records from Kafka with Spark."""

import msgspec
from pyspark.sql import DataFrame, SparkSession

from databus.kafka_java import java_settings
from databus.settings import Settings
from databus_spark.changelog import Offsets


def read_records(spark: SparkSession, settings: Settings, starts: Offsets, ends: Offsets) -> DataFrame | None:
    """Return the committed records between two offsets of each partition, with headers; None if there are none."""
    ranges = {topic: {p: (start, ends[topic][p]) for p, start in parts.items()} for topic, parts in starts.items()}
    ranges = {topic: {p: each for p, each in parts.items() if each[0] < each[1]} for topic, parts in ranges.items()}
    ranges = {topic: parts for topic, parts in ranges.items() if parts}
    if not ranges:
        return None
    return (
        spark.read.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in java_settings(settings.kafka).items()})
        .option("kafka.isolation.level", "read_committed")
        .option("assign", _json({topic: list(parts) for topic, parts in ranges.items()}))
        .option("startingOffsets", _json({t: {p: each[0] for p, each in parts.items()} for t, parts in ranges.items()}))
        .option("endingOffsets", _json({t: {p: each[1] for p, each in parts.items()} for t, parts in ranges.items()}))
        .option("includeHeaders", "true")
        .option("minPartitions", spark.sparkContext.defaultParallelism)
        .option("failOnDataLoss", "true")
        .load()
    )


def _json(value: Offsets | dict[str, list[int]]) -> str:
    return msgspec.json.encode(value).decode()

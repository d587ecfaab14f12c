"""Reads records, with their headers, from Kafka with Spark."""

import msgspec
from pyspark.sql import DataFrame, SparkSession

from databus_core.kafka_ends import Offsets
from databus_core.kafka_java import java_settings
from databus_core.settings import Kafka
from databus_spark.local_rows import local_rows

_RECORDS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)


def records_of(spark: SparkSession, kafka: Kafka, starts: Offsets, ends: Offsets, *, stream: bool) -> DataFrame:
    """Return the committed records between these offsets, or the stream of those from the starts on."""
    if stream:
        return stream_records(spark, kafka, starts)
    batch = read_records(spark, kafka, starts, ends)
    return local_rows(spark, [], _RECORDS) if batch is None else batch


def read_records(spark: SparkSession, kafka: Kafka, starts: Offsets, ends: Offsets) -> DataFrame | None:
    """Return the committed records between two offsets of each partition; None if there are none."""
    ranges = {topic: {p: (start, ends[topic][p]) for p, start in parts.items()} for topic, parts in starts.items()}
    ranges = {topic: {p: each for p, each in parts.items() if each[0] < each[1]} for topic, parts in ranges.items()}
    ranges = {topic: parts for topic, parts in ranges.items() if parts}
    if not ranges:
        return None
    return (
        spark.read.format("kafka")
        .options(**_options(kafka))
        .option("assign", _json({topic: list(parts) for topic, parts in ranges.items()}))
        .option("startingOffsets", _json({t: {p: each[0] for p, each in parts.items()} for t, parts in ranges.items()}))
        .option("endingOffsets", _json({t: {p: each[1] for p, each in parts.items()} for t, parts in ranges.items()}))
        .option("minPartitions", spark.sparkContext.defaultParallelism)
        .load()
    )


def stream_records(spark: SparkSession, kafka: Kafka, starts: Offsets) -> DataFrame:
    """Return a stream of the committed records of these topics, from these offsets of all their partitions on."""
    return (
        spark.readStream.format("kafka")
        .options(**_options(kafka))
        .option("subscribe", ",".join(starts))  # unlike `assign`, it follows partitions that are added
        .option("startingOffsets", _json(starts))
        .load()
    )


def _options(kafka: Kafka) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in java_settings(kafka).items()} | {
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }


def _json(value: Offsets | dict[str, list[int]]) -> str:
    return msgspec.json.encode(value).decode()

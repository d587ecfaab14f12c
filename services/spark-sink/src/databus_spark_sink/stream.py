"""The streaming query: Kafka's committed records go into the lake in micro-batches."""

import asyncio

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from databus.errors import ChangesLost, DatabusError, FatalError, KafkaUnavailable
from databus.kafka_java import java_settings
from databus.metrics import SINK_OFFSET
from databus.runtime import Health
from databus.settings import Settings
from databus_spark_sink.batch import LakeWriter
from databus_spark_sink.lake import LakeLayout
from databus_spark_sink.offsets import topic_pattern

#: limit of Kafka records in one micro-batch: bounds memory while the sink catches up
_MAX_RECORDS = 100_000
#: characters of a Spark error that are reported
_MAX_REASON = 300


def start(
    spark: SparkSession, settings: Settings, layout: LakeLayout, writer: LakeWriter, offsets: str, *, until_idle: bool
) -> StreamingQuery:
    """Start the query at its checkpoint, or at `offsets` if there is none yet. Blocks until Spark has started it."""
    records = (
        spark.readStream.format("kafka")
        .options(**{f"kafka.{name}": value for name, value in java_settings(settings.kafka).items()})
        .option("kafka.isolation.level", "read_committed")
        .option("subscribePattern", topic_pattern(settings))
        .option("startingOffsets", offsets)
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", _MAX_RECORDS)
        .load()
    )
    batches = records.writeStream.foreachBatch(writer.apply).option("checkpointLocation", str(layout.checkpoint))
    if until_idle:
        return batches.trigger(availableNow=True).start()
    return batches.trigger(processingTime=f"{settings.spark.trigger} seconds").start()


async def follow(query: StreamingQuery, writer: LakeWriter, health: Health) -> None:
    """Update health and metrics until the query ends, and stop it when cancelled. Raises the query's error."""
    try:
        while not await asyncio.to_thread(query.awaitTermination, 1):
            _set_offset_metrics(query)
            health.up()
        _set_offset_metrics(query)
    except StreamingQueryException as error:
        raise writer.failure or _classify(error) from error
    finally:
        await asyncio.shield(asyncio.to_thread(query.stop))


class _SourceReport(msgspec.Struct, frozen=True, rename="camel"):
    end_offset: dict[str, dict[str, int]] | None = None


class _QueryReport(msgspec.Struct, frozen=True):
    """The part of Spark's StreamingQueryProgress that the metrics need."""

    sources: list[_SourceReport]


def _set_offset_metrics(query: StreamingQuery) -> None:
    if (report := query.lastProgress) is None:
        return
    for source in msgspec.json.decode(report.json, type=_QueryReport).sources:
        for topic, partitions in (source.end_offset or {}).items():
            for partition, offset in partitions.items():
                SINK_OFFSET.labels(topic, partition).set(offset)


def _classify(error: StreamingQueryException) -> DatabusError:
    """Turn Spark's error into ours by its text. Reports only the start of the first line: the rest may contain rows."""
    text = str(error)
    reason = text.partition("\n")[0][:_MAX_REASON]
    if "KAFKA_DATA_LOSS" in text or "OffsetOutOfRange" in text:
        return ChangesLost(
            f"Kafka has deleted changes that the sink has not read: {reason} "
            "(raise the topics' retention and remove the lake to start from a new dump)"
        )
    if "must specify all TopicPartitions" in text:
        return KafkaUnavailable("a topic was created while the starting offsets were read")
    if "org.apache.kafka.common.errors" in text:
        return KafkaUnavailable(f"Spark cannot read from Kafka: {reason} (check kafka.bootstrap_servers)")
    return FatalError(f"Spark's streaming query failed: {reason}")

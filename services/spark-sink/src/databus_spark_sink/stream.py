"""The streaming query: Kafka's committed records, micro-batch by micro-batch, into the lake."""

import asyncio

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from databus.errors import ChangesLost, DatabusError, FatalError, KafkaUnavailable
from databus.metrics import SINK_OFFSET
from databus.runtime import Health
from databus.settings import Settings
from databus_spark_sink.batch import Batches
from databus_spark_sink.lake import Lake
from databus_spark_sink.offsets import topic_pattern

#: Kafka messages in one micro-batch: bounds what is held at once when there is much to catch up with
_MOST_MESSAGES = 100_000
#: longest part of a Spark error that is told
_LONGEST_REASON = 300


def start(
    spark: SparkSession, settings: Settings, place: Lake, batches: Batches, offsets: str, *, until_idle: bool
) -> StreamingQuery:
    """Start the query where its checkpoint says, or at `offsets` if it has none yet. Blocks."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", ",".join(settings.kafka.bootstrap_servers))
        .option("kafka.isolation.level", "read_committed")
        .option("subscribePattern", topic_pattern(settings))
        .option("startingOffsets", offsets)
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", _MOST_MESSAGES)
        .load()
    )
    writer = records.writeStream.foreachBatch(batches.apply).option("checkpointLocation", str(place.checkpoint))
    if until_idle:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.spark.trigger} seconds").start()


async def follow(query: StreamingQuery, batches: Batches, health: Health) -> None:
    """Keep health and metrics true until the query ends; stop it when cancelled. Raises why it failed."""
    try:
        while not await asyncio.to_thread(query.awaitTermination, 1):
            _tell_offsets(query)
            health.up()
        _tell_offsets(query)
    except StreamingQueryException as error:
        raise batches.failure or _reason(error) from error
    finally:
        await asyncio.shield(asyncio.to_thread(query.stop))


class _Source(msgspec.Struct, frozen=True, rename="camel"):
    end_offset: dict[str, dict[str, int]] | None = None


class _Progress(msgspec.Struct, frozen=True):
    """What is needed of Spark's own report."""

    sources: list[_Source]


def _tell_offsets(query: StreamingQuery) -> None:
    if (report := query.lastProgress) is None:
        return
    for source in msgspec.json.decode(report.json, type=_Progress).sources:
        for topic, partitions in (source.end_offset or {}).items():
            for partition, offset in partitions.items():
                SINK_OFFSET.labels(topic, partition).set(offset)


def _reason(error: StreamingQueryException) -> DatabusError:
    """Sort what Spark says; its text may be long and hold data, so only its beginning is told."""
    text = str(error)
    reason = text.splitlines()[0][:_LONGEST_REASON]
    if "KAFKA_DATA_LOSS" in text or "OffsetOutOfRange" in text:
        return ChangesLost(f"Kafka no longer holds the changes that come next: {reason}")
    if "must specify all TopicPartitions" in text:
        return KafkaUnavailable("a topic was created while the first offsets were read")
    if "org.apache.kafka.common.errors" in text:
        return KafkaUnavailable(f"Kafka does not serve: {reason} (check kafka.bootstrap_servers)")
    return FatalError(f"Spark gave up: {reason}")

"""Read the last committed progress of a pipeline from Kafka."""

from aiokafka import AIOKafkaConsumer, TopicPartition

from databus import names
from databus.progress import Progress, decode_progress
from databus.settings import Settings


async def read_progress(settings: Settings) -> Progress | None:
    """Give the last committed progress; None if there was never one.

    Call it only after the producer of this pipeline has started: Kafka has then ended whatever a predecessor left open,
    so everything up to the high watermark is decided. Reading stops there and not at the last stable offset, which may
    lie before it. Raises ProgressCorrupt for a record that cannot be read.
    """
    partition = TopicPartition(names.progress_topic(settings.name), 0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.kafka.bootstrap_servers,
        isolation_level="read_committed",
        enable_auto_commit=False,
    )
    progress = None
    async with consumer:
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        while not await _at_end(consumer, partition):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                progress = decode_progress(records[-1].value)
    return progress


async def _at_end(consumer: AIOKafkaConsumer, partition: TopicPartition) -> bool:
    high_watermark = consumer.highwater(partition)
    return high_watermark is not None and await consumer.position(partition) >= high_watermark

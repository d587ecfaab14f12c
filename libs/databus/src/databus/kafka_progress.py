"""Read a pipeline's progress from Kafka: backwards, because every commit has left a record."""

from aiokafka import ConsumerRecord, TopicPartition

from databus import names
from databus.connections import kafka_errors
from databus.errors import START_AFRESH, KafkaUnavailable, ProgressCorrupt
from databus.kafka_client import Isolation, consumer, records, running
from databus.progress import Progress, decode_progress
from databus.settings import Settings

#: offsets that are read first; markers of transactions are among them
_FIRST_STEP = 32
_GROWTH = 8


async def read_progress(settings: Settings, *, whole: bool = False) -> Progress | None:
    """Give the last committed progress; None if there was never one. The topic is not created.

    What an open transaction holds back is not read: reading stops at the last stable offset. With `whole` it goes on to
    the high watermark and waits for what is undecided, which is for the producer that has just ended whatever its
    predecessor left open. Raises KafkaUnavailable, and ProgressCorrupt for a record that cannot be read.
    """
    partition = TopicPartition(names.progress_topic(settings.name), 0)
    with kafka_errors():
        bounds = await _bounds(settings, partition, "read_uncommitted" if whole else "read_committed")
        if bounds is None and whole:
            # Its producer has just made sure of the topic: a broker that does not know it must not mean "start afresh".
            raise KafkaUnavailable(f"Kafka does not know topic {partition.topic} yet")
        begin, end = bounds or (0, 0)
        if record := await _last_committed(settings, partition, begin, end):
            return _decoded(partition, record)
    if begin:
        raise ProgressCorrupt(f"the records of topic {partition.topic} were deleted; {START_AFRESH}")
    return None


async def _last_committed(
    settings: Settings, partition: TopicPartition, begin: int, end: int
) -> ConsumerRecord[object, bytes] | None:
    """Find the last record between two offsets; None: there is none."""
    if begin == end:
        return None
    async with running(consumer(settings, "read_committed")) as reading:
        reading.assign([partition])
        start, step = end, _FIRST_STEP
        while start > begin:
            start, step = max(begin, end - step), step * _GROWTH
            last = None
            async for record in records(reading, partition, start, end):  # not markers and aborted ones
                last = record
            if last is not None:
                return last
    return None


async def _bounds(settings: Settings, partition: TopicPartition, isolation: Isolation) -> tuple[int, int] | None:
    """Give the first offset and the one to stop at (the last stable one, or the high watermark); None: no topic."""
    async with running(consumer(settings, isolation)) as reading:
        # Asked for all topics, for asking for one by its name could create it.
        if partition.topic not in await reading.topics():
            return None
        begin = await reading.beginning_offsets([partition])
        end = await reading.end_offsets([partition])
    return begin[partition], end[partition]


def _decoded(partition: TopicPartition, record: ConsumerRecord[object, bytes]) -> Progress:
    try:
        return decode_progress(record.value)
    except ProgressCorrupt as error:
        raise ProgressCorrupt(f"topic {partition.topic}, offset {record.offset}: {error}; {START_AFRESH}") from error

"""Read a pipeline's progress from Kafka.

Each commit appends a record to the topic and only the last one counts, so the topic is read backwards.
"""

from aiokafka import ConsumerRecord, TopicPartition

from databus_core import names
from databus_core.errors import START_OVER, KafkaUnavailable, ProgressCorrupt
from databus_core.kafka_client import Isolation, consumer, records
from databus_core.kafka_topics import offsets_of
from databus_core.progress import Progress, decode_progress
from databus_core.settings import Settings

#: number of offsets in the first step backwards; transaction markers have offsets, too
_FIRST_STEP = 32
#: factor by which each further step is longer
_GROWTH = 8


async def read_progress(settings: Settings, *, to_end: bool = False) -> Progress | None:
    """Read the last committed progress; None if there never was one. The topic is not created.

    Reading stops at the last stable offset, before any open transaction. With `to_end` it continues to the high
    watermark and waits until open transactions have ended, so that no commit before the call is missed. With `to_end`
    the topic must exist.

    Raises KafkaUnavailable, FatalError if Kafka refuses access, and ProgressCorrupt if the record cannot be read or was
    deleted.
    """
    partition = TopicPartition(names.progress_topic(settings.name), 0)
    isolation: Isolation = "read_uncommitted" if to_end else "read_committed"
    async with consumer(settings.kafka, isolation) as reading:
        bounds = await offsets_of(reading, partition)
    if bounds is None and to_end:
        # The publisher has made sure that the topic exists. If a broker does not know the topic yet, the pipeline must
        # not start over.
        raise KafkaUnavailable(f"Kafka does not know topic {partition.topic} yet")
    begin, end = bounds or (0, 0)
    if record := await _last_committed(settings, partition, begin, end):
        return _decoded(partition, record)
    if begin:
        raise ProgressCorrupt(f"the records of topic {partition.topic} were deleted; {START_OVER}")
    return None


async def read_history(settings: Settings) -> list[tuple[Progress, int]]:
    """Read each progress that Kafka still has, the oldest first, with the time of its record in ms since the epoch.

    Kafka deletes older ones when it compacts the topic. Raises the errors of `read_progress`.
    """
    partition = TopicPartition(names.progress_topic(settings.name), 0)
    async with consumer(settings.kafka) as reading:
        if (bounds := await offsets_of(reading, partition)) is None:
            return []
        reading.assign([partition])
        return [
            (_decoded(partition, record), record.timestamp) async for record in records(reading, {partition: bounds})
        ]


async def _last_committed(
    settings: Settings, partition: TopicPartition, begin: int, end: int
) -> ConsumerRecord[object, bytes] | None:
    """Find the last committed record between two offsets."""
    if begin == end:
        return None
    async with consumer(settings.kafka) as reading:
        reading.assign([partition])
        start, step = end, _FIRST_STEP
        while start > begin:
            start, step = max(begin, end - step), step * _GROWTH
            last = None
            async for record in records(reading, {partition: (start, end)}):  # skips markers and aborted records
                last = record
            if last is not None:
                return last
    return None


def _decoded(partition: TopicPartition, record: ConsumerRecord[object, bytes]) -> Progress:
    try:
        return decode_progress(record.value)
    except ProgressCorrupt as error:
        raise ProgressCorrupt(f"topic {partition.topic}, offset {record.offset}: {error}; {START_OVER}") from error

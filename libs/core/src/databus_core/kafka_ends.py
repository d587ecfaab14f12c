"""Kafka offsets by topic and partition, and the ends of partitions before which no transaction is open."""

import asyncio
import time
from typing import TypeAlias

from aiokafka import AIOKafkaConsumer, TopicPartition

from databus_core.errors import KafkaUnavailable

#: topic → partition → offset
Offsets: TypeAlias = dict[str, dict[int, int]]

#: pause while a transaction is open
_PAUSE_SECONDS = 0.01
#: how long a transaction may be open beyond `publisher.transaction_timeout`; Kafka aborts it 10 s after that timeout
_LATE_SECONDS = 60.0


async def stable_ends(
    transaction_timeout: float, written: AIOKafkaConsumer, committed: AIOKafkaConsumer, partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    """Read the partitions' ends, and wait until no transaction before them is open.

    `transaction_timeout` is the publisher's, in seconds. The consumers read, and do not read, records of open
    transactions. Raises KafkaUnavailable if one stays open for longer than the publisher's may.
    """
    longest = transaction_timeout + _LATE_SECONDS
    ends: dict[TopicPartition, int] = await written.end_offsets(partitions)
    limit = time.monotonic() + longest
    while True:
        stable = await committed.end_offsets(partitions)
        late = [each for each, end in ends.items() if stable[each] < end]
        if not late:
            return ends
        if time.monotonic() > limit:
            raise KafkaUnavailable(
                f"topic {late[0].topic}, partition {late[0].partition}: a transaction before offset {ends[late[0]]} is "
                f"open for more than {longest:g} s, longer than publisher.transaction_timeout permits, and hides what "
                "comes after it: look for its producer with kafka-transactions.sh find-hanging, and end it with abort"
            )
        await asyncio.sleep(_PAUSE_SECONDS)


def by_topic(offsets: dict[TopicPartition, int]) -> Offsets:
    """Group offsets of partitions by their topics."""
    found: Offsets = {}
    for partition, offset in offsets.items():
        found.setdefault(partition.topic, {})[partition.partition] = offset
    return found

"""Discard dead letters: their changes stay unpublished, and consumers that wait for them go on."""

from collections.abc import Sequence

from databus_core import kafka_client, names
from databus_core.kafka_dead_letters import Letter
from databus_core.settings import Settings


async def discard(settings: Settings, letters: Sequence[Letter]) -> None:
    """Write a tombstone for each letter. Raises KafkaUnavailable, and FatalError if Kafka refuses access."""
    topic = names.dead_letter_topic(settings.name)
    async with kafka_client.producer(settings.kafka) as producer:
        for letter in letters:
            await producer.send_and_wait(topic, None, key=letter.id, partition=0)

"""Read the table states of a pipeline from Kafka, and write requests there (`databus_core.table_states`)."""

from collections.abc import Iterable

from databus_core import kafka_client, names
from databus_core.kafka_compacted import read_latest
from databus_core.settings import Settings
from databus_core.skips import Skip
from databus_core.table_states import Backfill, TableStates, backfill_key, decode_states, encode


async def read_states(settings: Settings) -> tuple[TableStates, int]:
    """Read the committed states, and the offset after them. They are empty if the topic does not exist.

    Raises KafkaUnavailable, FatalError if Kafka refuses access, and TableStatesCorrupt.
    """
    records, end = await read_latest(settings.kafka, names.table_states_topic(settings.name))
    return decode_states(records.items()), end


async def write_backfills(settings: Settings, backfills: list[Backfill]) -> None:
    """Write requests, or changed requests, of backfills. The topic must exist.

    When this returns, all of them are durable. If it raises, some of them may be; an equal request can be written
    again. Raises KafkaUnavailable, and FatalError if Kafka refuses access.
    """
    await _write(settings, [(backfill_key(each.id), encode(each)) for each in backfills])


async def write_skip(settings: Settings, skip: Skip) -> None:
    """Write a request to skip a transaction, as `write_backfills` does."""
    await _write(settings, [(skip.key, encode(skip))])


async def _write(settings: Settings, records: Iterable[tuple[bytes, bytes]]) -> None:
    topic = names.table_states_topic(settings.name)
    async with kafka_client.producer(settings.kafka) as producer:
        for key, value in records:
            await producer.send(topic, value, key, partition=0)
        await producer.flush()

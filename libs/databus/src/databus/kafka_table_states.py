"""Read the table states of a pipeline from Kafka, and write requests of backfills there (`databus.table_states`)."""

from databus import kafka_client, names
from databus.kafka_compacted import read_latest
from databus.settings import Settings
from databus.table_states import Backfill, TableStates, backfill_key, decode_states, encode


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
    topic = names.table_states_topic(settings.name)
    async with kafka_client.producer(settings.kafka) as producer:
        for each in backfills:
            await producer.send(topic, encode(each), backfill_key(each.id), partition=0)
        await producer.flush()

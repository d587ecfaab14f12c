"""Write the records of the topic of table states (`databus.table_states`). A parked table gets a dead letter, too."""

from databus import names
from databus.dead_letters import parked_id, parked_letter
from databus.events import StateRecord
from databus.table_states import read_doubt
from databus_messages.formats.base import Record
from databus_messages.routing.partitions import Partition
from databus_publisher.batches import UNLIMITED
from databus_publisher.dead_letters import DeadLetters
from databus_publisher.producer import Producer


class TableStateWriter:
    """Writes the states of tables, and keeps one dead letter for each table in doubt."""

    def __init__(self, producer: Producer, pipeline: str, dead_letters: DeadLetters) -> None:
        self._producer = producer
        self._dead_letters = dead_letters
        self._partition = Partition(names.table_states_topic(pipeline), 0)
        producer.set_limit(self._partition.topic, UNLIMITED)

    async def write(self, event: StateRecord) -> None:
        """Write a record, and before it what changes in the dead-letter topic."""
        if found := read_doubt(event.key, event.value):
            schema, table, doubt = found
            if doubt is None:
                await self._dead_letters.delete(parked_id(schema, table))
            elif doubt.state == "parked":
                await self._dead_letters.write(parked_letter(schema, table, doubt))
        if not self._producer.transactional:
            # Once the state is written, a new generation does not send again what precedes it.
            await self._producer.flush()
        await self._producer.send(self._partition, Record(event.key, event.value))

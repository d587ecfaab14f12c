"""Write the records of the topic of table states (`databus_core.table_states`). A parked table gets a dead letter, too.

A table that cannot be published is *reported*: it is parked here, in the Kafka transaction that would have contained
its change. The generation ends with this transaction. So what the reader has sent meanwhile is not published, for
instance that the table is renamed. In the next generation the reader finds the report, takes the doubt over, and loads
the table again.
"""

import time
from collections.abc import Iterable
from typing import TypeAlias

from databus_core import names
from databus_core.dead_letters import parked_id, parked_letter
from databus_core.errors import GenerationLost, RuleMismatch, SchemaRefused, TopicRefused, WriteDenied
from databus_core.events import StateRecord, Table, full_name
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.table_states import TableDoubt, doubt_key, encode, read_doubt
from databus_messages.formats.base import Record
from databus_messages.routing.partitions import Partition
from databus_publisher.batches import UNLIMITED
from databus_publisher.dead_letters import DeadLetters
from databus_publisher.producer import Producer

log = get_logger(__name__)

#: why nothing of a table can be published
Unpublishable: TypeAlias = RuleMismatch | TopicRefused | SchemaRefused


class TableStateWriter:
    """Writes the states of tables, and keeps one dead letter for each table in doubt."""

    def __init__(
        self, producer: Producer, pipeline: str, dead_letters: DeadLetters, parked: Iterable[tuple[str, str]]
    ) -> None:
        self._producer = producer
        self._dead_letters = dead_letters
        self._partition = Partition(names.table_states_topic(pipeline), 0)
        producer.set_limit(self._partition.topic, UNLIMITED)
        #: (schema, name) of the tables that are parked
        self.parked = set(parked)
        #: those of them that were reported in the open transaction
        self.reported: set[tuple[str, str]] = set()

    async def write(self, event: StateRecord) -> None:
        """Write a record, and before it what changes in the dead-letter topic."""
        if found := read_doubt(event.key, event.value):
            schema, table, doubt = found
            is_reported = (schema, table) in self.reported
            if doubt is not None and doubt.state == "parked":
                self.reported.discard((schema, table))
                self.parked.add((schema, table))
                if not is_reported:
                    await self._dead_letters.write(parked_letter(schema, table, doubt))
            elif is_reported:  # the reader does not know of the report: the doubt goes on
                return
            else:
                self.parked.discard((schema, table))
                if doubt is None:
                    await self._dead_letters.delete(parked_id(schema, table))
        await self._write(event.key, event.value)

    async def report(self, table: Table, error: Unpublishable, file: str, offset: int) -> None:
        """Park a table because of an error at this position, unless it is reported already."""
        name = table.schema, table.name
        if name in self.reported:
            return
        reason, text = _described(error)
        now = time.time_ns() // 1000
        doubt = TableDoubt(
            state="parked",
            reason=reason,
            text=text,
            file=file,
            offset=offset,
            since_us=now,
            reported=True,
        )
        parked = f"{table.full_name} is parked: {text}; the reader decides when it is loaded again (doubt.heal)"
        log.error(LogEvent.TABLE_PARKED, parked, table=table.full_name, position=f"{file}:{offset}")
        await self._dead_letters.write(parked_letter(*name, doubt))
        await self._write(doubt_key(*name), encode(doubt))
        self.parked.add(name)
        self.reported.add(name)

    def require_none_reported(self) -> None:
        """Raise GenerationLost if tables are reported: the reader has to take them over at this position."""
        if self.reported:
            named = ", ".join(sorted(full_name(*table) for table in self.reported))
            raise GenerationLost(f"the reader does not know yet that {named} cannot be published")

    async def _write(self, key: bytes, value: bytes | None) -> None:
        if not self._producer.transactional:
            # Once the state is written, a new generation does not send again what precedes it.
            await self._producer.flush()
        await self._producer.send(self._partition, Record(key, value))


def _described(error: Unpublishable) -> tuple[str, str]:
    """Return the reason of a doubt, and what happened and what to do."""
    match error:
        case RuleMismatch():
            return "rule_mismatch", f"{error}; mend the rule and start the publisher again, or alter the table"
        case WriteDenied():
            return "write_denied", str(error)
        case TopicRefused():
            return "topic_refused", f"{error}; create the topic, or let Kafka accept it (rights, policy, settings)"
        case SchemaRefused():
            return "schema_refused", str(error)

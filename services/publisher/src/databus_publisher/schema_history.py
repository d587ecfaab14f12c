"""Write the definitions of tables and schemas to the schema history's topic; the next commit covers them."""

from databus_core import names
from databus_core.events import SchemaDefinition, Table
from databus_core.kafka_history import HEAD, WAITING, encode_charset, encode_table
from databus_messages.formats.base import Record
from databus_messages.routing.partitions import Partition
from databus_publisher.batches import UNLIMITED
from databus_publisher.producer import Producer


class SchemaHistoryWriter:
    """Writes a generation's definitions, and omits those that are equal to the last one written for the same name."""

    def __init__(self, producer: Producer, pipeline: str) -> None:
        self._producer = producer
        self._partition = Partition(names.schema_topic(pipeline), 0)
        producer.set_limit(self._partition.topic, UNLIMITED)
        #: last value by key; None: dropped
        self._written: dict[bytes, bytes | None] = {}

    async def write_head(self) -> None:
        """Write the head record: it says that the history began with the pipeline and has all tables it should have."""
        await self._write(names.schema_key(), HEAD)

    async def write_table(self, table: Table) -> None:
        """Write a table; a table without columns was dropped."""
        await self._write(names.schema_key(table.schema, table.name), encode_table(table) if table.columns else None)

    async def write_schema(self, event: SchemaDefinition) -> None:
        """Write a schema's default character set; without a character set the schema was dropped."""
        value = None if event.charset is None else encode_charset(event.charset)
        await self._write(names.schema_key(event.schema), value)

    async def write_waiting(self, schema: str, table: str) -> None:
        """Write that a table's topic belongs to another table, so that after a restart it still does."""
        await self._write(names.schema_key("", schema, table), WAITING)

    async def _write(self, key: bytes, value: bytes | None) -> None:
        if self._written.get(key, b"") != value:
            self._written[key] = value
            await self._producer.send(self._partition, Record(key, value))

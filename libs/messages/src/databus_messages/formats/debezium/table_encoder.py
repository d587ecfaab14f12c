"""The encoder of keys and row images for one version of a table."""

from collections.abc import Sequence

from databus_core.events import Row, Table
from databus_core.names import kafka_name
from databus_messages.formats.debezium.codec import Codec
from databus_messages.formats.debezium.envelope import envelope
from databus_messages.formats.debezium.options import DebeziumOptions
from databus_messages.formats.debezium.schemas import Schema, struct
from databus_messages.formats.debezium.types import column_type


class TableEncoder:
    """Encodes the keys of rows; `images` encodes their images."""

    def __init__(self, table: Table, prefix: str, source: Schema, options: DebeziumOptions, codec: Codec) -> None:
        topic = kafka_name(f"{prefix}.{table.full_name}")
        types = [column_type(column, options) for column in table.columns]
        fields = {column.name: kind.schema for column, kind in zip(table.columns, types, strict=True)}
        image = struct(f"{topic}.Value", fields, version=None).nullable()
        self.images = codec.row_encoder(image, types)
        #: the bytes before and after a value (`Codec.wrapper`)
        self.value_wrapper = codec.wrapper(topic, "value", envelope(f"{topic}.Envelope", image, source))
        self._key = table.row_key
        if self.has_key:
            names = [table.columns[index].name for index in self._key]
            key = struct(f"{topic}.Key", {name: fields[name] for name in names}, version=None)
            self._key_wrapper = codec.wrapper(topic, "key", key)

    @property
    def has_key(self) -> bool:
        """Whether the table has a primary key or, instead, a unique key (`Table.row_key`)."""
        return bool(self._key)

    @property
    def key_parts(self) -> tuple[tuple[int, ...], bytes, bytes] | None:
        """Indexes of the key's columns, and what is before and after them; None for a table without a key."""
        return (self._key, *self._key_wrapper) if self.has_key else None

    def keys(self, rows: Sequence[Row]) -> Sequence[bytes | None]:
        """Encode the keys of rows; None for each row of a table without a key."""
        return self.images.columns(rows, self._key, *self._key_wrapper) if self.has_key else [None] * len(rows)

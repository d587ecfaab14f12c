"""What is known of a table once, and used for each of its rows."""

from collections.abc import Sequence

from databus.events import Row, Table
from databus.names import kafka_name
from databus_messages.formats.debezium.codec import Codec
from databus_messages.formats.debezium.envelope import envelope
from databus_messages.formats.debezium.options import Options
from databus_messages.formats.debezium.schemas import Schema, struct
from databus_messages.formats.debezium.types import column_type


class TablePlan:
    """Encodes keys and images of a table's rows."""

    def __init__(self, table: Table, prefix: str, source: Schema, options: Options, codec: Codec) -> None:
        topic = kafka_name(f"{prefix}.{table.schema}.{table.name}")
        types = [column_type(column, options) for column in table.columns]
        fields = {column.name: kind.schema for column, kind in zip(table.columns, types, strict=True)}
        image = struct(f"{topic}.Value", fields, version=None).maybe()
        self.images = codec.rows(image, types)
        #: what stands before and behind a value
        self.frame = codec.frame(topic, "value", envelope(f"{topic}.Envelope", image, source))
        self._key = tuple(table.primary_key)
        if self.keyed:
            names = [table.columns[place].name for place in self._key]
            key = struct(f"{topic}.Key", {name: fields[name] for name in names}, version=None)
            self._key_frame = codec.frame(topic, "key", key)

    @property
    def keyed(self) -> bool:
        """Whether the table has a primary key."""
        return bool(self._key)

    def keys(self, rows: Sequence[Row]) -> Sequence[bytes | None]:
        """Make keys of rows; None for those of a table that has none."""
        return self.images.some(rows, self._key, *self._key_frame) if self.keyed else [None] * len(rows)

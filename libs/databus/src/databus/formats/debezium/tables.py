"""What is known of a table once, and used for each of its rows."""

from collections.abc import Sequence
from typing import Any

from databus.events import Row, Table
from databus.formats.debezium.codec import Codec
from databus.formats.debezium.envelope import envelope
from databus.formats.debezium.options import Options
from databus.formats.debezium.schemas import Schema, struct
from databus.formats.debezium.types import column_type
from databus.names import kafka_name


class TablePlan:
    """Makes values of a table's rows, and keys and images of the values."""

    def __init__(self, table: Table, prefix: str, source: Schema, options: Options, codec: Codec) -> None:
        self.topic = kafka_name(f"{prefix}.{table.schema}.{table.name}")
        types = [column_type(column, options) for column in table.columns]
        fields = {column.name: kind.schema for column, kind in zip(table.columns, types, strict=True)}
        self._convert = tuple(codec.integer_text if kind.convert is int else kind.convert for kind in types)
        image = struct(f"{self.topic}.Value", fields, version=None).maybe()
        self._image, self._present = codec.row(image), codec.present
        #: what stands before and behind a value
        self.frame = codec.frame(self.topic, "value", envelope(f"{self.topic}.Envelope", image, source))
        #: places of the key's columns
        self.key_columns = table.primary_key
        if table.primary_key:
            names = [table.columns[place].name for place in table.primary_key]
            key = struct(f"{self.topic}.Key", {name: fields[name] for name in names}, version=None)
            self._key = codec.row(key)
            self._key_head, self._key_tail = codec.frame(self.topic, "key", key)

    def values(self, row: Row) -> list[Any]:
        """Make the values of a row."""
        return [None if text is None else convert(text) for convert, text in zip(self._convert, row, strict=True)]

    def changed(self, before: Row, values: Sequence[Any], after: Row) -> list[Any]:
        """Make the values of a row that was another before, of these values."""
        return [
            value if text == old else None if text is None else convert(text)
            for convert, old, value, text in zip(self._convert, before, values, after, strict=True)
        ]

    def image(self, values: Sequence[Any]) -> bytes:
        """Encode an image."""
        return self._present + self._image(values)

    def key(self, values: Sequence[Any]) -> bytes | None:
        """Encode the key of a row; None for a table that has none."""
        if not self.key_columns:
            return None
        return b"".join((self._key_head, self._key([values[place] for place in self.key_columns]), self._key_tail))

    def moved(self, before: Row, after: Row) -> bool:
        """Tell whether an update changes the key."""
        return any(before[place] != after[place] for place in self.key_columns)

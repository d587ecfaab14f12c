"""What is known of a table once, and used for each of its rows."""

from collections.abc import Sequence
from operator import itemgetter

from databus.events import Row, Table
from databus.formats.debezium.codec import Codec
from databus.formats.debezium.envelope import envelope
from databus.formats.debezium.options import Options
from databus.formats.debezium.schemas import Schema, struct
from databus.formats.debezium.types import column_type
from databus.names import kafka_name


class TablePlan:
    """Makes images and keys of a table's rows."""

    def __init__(self, table: Table, prefix: str, source: Schema, options: Options, codec: Codec) -> None:
        topic = kafka_name(f"{prefix}.{table.schema}.{table.name}")
        types = [column_type(column, options) for column in table.columns]
        fields = {column.name: kind.schema for column, kind in zip(table.columns, types, strict=True)}
        image = struct(f"{topic}.Value", fields, version=None).maybe()
        self._images = codec.rows(image, types, codec.present, b"")
        #: what stands before and behind a value
        self.frame = codec.frame(topic, "value", envelope(f"{topic}.Envelope", image, source))
        self._keys = None
        if table.primary_key:
            names = [table.columns[place].name for place in table.primary_key]
            key = struct(f"{topic}.Key", {name: fields[name] for name in names}, version=None)
            frame = codec.frame(topic, "key", key)
            self._keys = codec.rows(key, [types[place] for place in table.primary_key], *frame)
            self._key_columns = [itemgetter(place) for place in table.primary_key]

    def images(self, rows: Sequence[Row]) -> list[bytes]:
        """Make images of rows."""
        return self._images.encode(rows)

    def images_of_updates(self, before: Sequence[Row], after: Sequence[Row]) -> tuple[list[bytes], list[bytes]]:
        """Make images of rows before and after their updates."""
        return self._images.encode_updates(before, after)

    def keys(self, rows: Sequence[Row]) -> Sequence[bytes | None]:
        """Make keys of rows; None for those of a table that has none."""
        if self._keys is None:
            return [None] * len(rows)
        return self._keys.encode([[cell(row) for cell in self._key_columns] for row in rows])

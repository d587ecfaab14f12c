"""What is known of a table once, and used for each of its rows."""

from collections.abc import Iterable, Sequence
from itertools import repeat

from databus.events import Row, Table
from databus.formats.debezium.codec import Codec, Columns, EncodeCell, joined
from databus.formats.debezium.envelope import envelope
from databus.formats.debezium.options import Options
from databus.formats.debezium.schemas import Schema, struct
from databus.formats.debezium.types import column_type
from databus.names import kafka_name


class TablePlan:
    """Encodes a table's rows, and makes images and keys of the encoded cells."""

    def __init__(self, table: Table, prefix: str, source: Schema, options: Options, codec: Codec) -> None:
        topic = kafka_name(f"{prefix}.{table.schema}.{table.name}")
        types = [column_type(column, options) for column in table.columns]
        fields = {column.name: kind.schema for column, kind in zip(table.columns, types, strict=True)}
        image = struct(f"{topic}.Value", fields, version=None).maybe()
        self._encoders = [(codec.cell(kind), kind.schema.optional) for kind in types]
        self._null = codec.null
        self._image = _framed(codec.joints(image), codec.present, b"")
        #: what stands before and behind a value
        self.frame = codec.frame(topic, "value", envelope(f"{topic}.Envelope", image, source))
        self._key_columns = table.primary_key
        if table.primary_key:
            names = [table.columns[place].name for place in table.primary_key]
            key = struct(f"{topic}.Key", {name: fields[name] for name in names}, version=None)
            self._key = _framed(codec.joints(key), *codec.frame(topic, "key", key))

    def encode(self, rows: Sequence[Row]) -> Columns:
        """Encode rows."""
        if len(rows) == 1:  # half the time that columns take
            return [(cell,) for cell in self._cells(rows[0])]
        columns = zip(self._encoders, zip(*rows, strict=True), strict=True)
        return [self._column(*how, texts) for how, texts in columns]

    def encode_changed(self, before: Sequence[Row], encoded: Columns, after: Sequence[Row]) -> Columns:
        """Encode rows that were others before: most of their columns are the same."""
        if len(after) == 1:
            ((old_row,), (new_row,)) = before, after
            return [
                done if old == new else self._column(*how, (new,))
                for how, done, old, new in zip(self._encoders, encoded, old_row, new_row, strict=True)
            ]
        columns = zip(self._encoders, encoded, zip(*before, strict=True), zip(*after, strict=True), strict=True)
        return [done if old == new else self._column(*how, new) for how, done, old, new in columns]

    def images(self, columns: Columns) -> list[bytes]:
        """Make images of rows."""
        return joined(self._image, columns)

    def keys(self, columns: Columns) -> Iterable[bytes | None]:
        """Make keys of rows; None, without an end, for a table that has none."""
        return joined(self._key, [columns[place] for place in self._key_columns]) if self._key_columns else repeat(None)

    def moved(self, before: Columns, after: Columns) -> bool:
        """Tell whether a key changes."""
        return any(before[place] != after[place] for place in self._key_columns)

    def _cells(self, row: Row) -> list[bytes]:
        null = self._null
        return [
            null if text is None else text if encode is None else encode(text)
            for (encode, _), text in zip(self._encoders, row, strict=True)
        ]

    def _column(self, encode: EncodeCell, optional: bool, texts: Sequence[bytes | None]) -> Sequence[bytes]:
        null = self._null
        if encode is None:
            return [null if text is None else text for text in texts]
        if optional:
            return [null if text is None else encode(text) for text in texts]
        return list(map(encode, texts))  # type: ignore[arg-type]  # a column that is NOT NULL has no None


def _framed(joints: Sequence[bytes], head: bytes, tail: bytes) -> list[bytes]:
    return [head + joints[0], *joints[1:-1], joints[-1] + tail]

"""Encodes rows in Avro, by column: a column that no update of an event changes is encoded once for both images."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from databus_core.events import Row
from databus_messages.formats.debezium.codec import EncodedColumns, ImageTemplate, RowEncoder, interleave

#: encodes a cell that is not NULL
CellEncoder: TypeAlias = Callable[[bytes], bytes]


class AvroRows(RowEncoder):
    """Encodes rows as Avro records, whose fields follow each other without separators."""

    def __init__(
        self, encoders: Sequence[tuple[CellEncoder, bool]], null: bytes, integer: Callable[[int], bytes]
    ) -> None:
        """Take, for each column, its encoder and whether it is nullable."""
        self._encoders, self._null, self._integer = encoders, null, integer
        self._inner = [b""] * (len(encoders) - 1)

    def columns(self, rows: Sequence[Row], indexes: tuple[int, ...], head: bytes, tail: bytes) -> list[bytes]:
        """Encode some columns of each row."""
        columns = [self._column(*self._encoders[index], [row[index] for row in rows]) for index in indexes]
        return interleave([head, *[b""] * (len(indexes) - 1), tail], columns)

    def images(
        self, rows: Sequence[Row], numbers: Sequence[int], template: ImageTemplate, tails: bytes | Sequence[bytes]
    ) -> list[bytes]:
        """Encode rows in the template."""
        head, separator, middle = template
        tail_of_each = [tails] * len(numbers) if isinstance(tails, bytes) else tails
        after_images = list(map(self._integer, numbers)), tail_of_each
        if separator is None:
            return interleave([head, *self._inner, middle, b"", b""], [*self._columns(rows), *after_images])
        columns = [column for images in self._updates(rows[::2], rows[1::2]) for column in images]
        separators = [head, *self._inner, separator, *self._inner, middle, b"", b""]
        return interleave(separators, [*columns, *after_images])

    def _updates(self, before: Sequence[Row], after: Sequence[Row]) -> tuple[EncodedColumns, EncodedColumns]:
        encoded = self._columns(before)
        columns = zip(self._encoders, encoded, _transposed(before), _transposed(after), strict=True)
        return encoded, [same if old == new else self._column(*encoder, new) for encoder, same, old, new in columns]

    def _columns(self, rows: Sequence[Row]) -> EncodedColumns:
        if len(rows) == 1:  # takes half of the general case's time
            cells = zip(self._encoders, rows[0], strict=True)
            return [(self._null_if(nullable) if text is None else encode(text),) for (encode, nullable), text in cells]
        columns = zip(self._encoders, _transposed(rows), strict=True)
        return [self._column(*encoder, texts) for encoder, texts in columns]

    def _column(self, encode: CellEncoder, nullable: bool, texts: Sequence[bytes | None]) -> Sequence[bytes]:
        if None in texts:
            null = self._null_if(nullable)
            return [null if text is None else encode(text) for text in texts]
        return list(map(encode, texts))  # type: ignore[arg-type]  # no text is None

    def _null_if(self, nullable: bool) -> bytes:
        if not nullable:
            raise ValueError("NULL in a NOT NULL column")
        return self._null


def _transposed(rows: Sequence[Row]) -> Iterable[tuple[bytes | None, ...]]:
    return zip(*rows, strict=True)

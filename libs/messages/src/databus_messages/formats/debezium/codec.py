"""Codecs turn Connect data into bytes; Kafka Connect calls them converters.

A codec encodes a record in parts, so that a part that many records have in common is encoded once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, ClassVar, NamedTuple, TypeAlias

from databus_core.events import Row
from databus_messages.formats.debezium.schemas import Schema
from databus_messages.formats.debezium.types import ColumnType

#: encoded fields of some rows: for each column, its field in each row
EncodedColumns: TypeAlias = Sequence[Sequence[bytes]]


class ImageTemplate(NamedTuple):
    """The bytes around the row image of a change, or around the two images of an update."""

    #: the bytes before the first image
    head: bytes
    #: the bytes between an update's images; None if there is only one image
    separator: bytes | None
    #: the bytes between the last image and the row number
    middle: bytes


class RowEncoder(ABC):
    """Encodes one or more rows of a table as structs."""

    @abstractmethod
    def columns(self, rows: Sequence[Row], indexes: tuple[int, ...], head: bytes, tail: bytes) -> list[bytes]:
        """Encode some columns of each row, between `head` and `tail`."""

    @abstractmethod
    def images(
        self, rows: Sequence[Row], numbers: Sequence[int], template: ImageTemplate, tails: bytes | Sequence[bytes]
    ) -> list[bytes]:
        """Encode each row, or each pair of rows of an update, in the template, followed by its number and its tail.

        `tails` has a tail for each number, or is the same tail for all.
        """


class Codec(ABC):
    """Encodes Connect data in one wire format."""

    #: null in an optional field without a default
    null: ClassVar[bytes]
    #: prefix of any other value in such a field
    present: ClassVar[bytes]
    #: encodes an integer; in an optional field, `present` must precede it
    integer: Callable[[int], bytes]

    @abstractmethod
    def wrapper(self, topic: str, part: str, schema: Schema) -> tuple[bytes, bytes]:
        """Return the bytes before and after the data of a record's `key` or `value`, e.g. the schema or its id."""

    @abstractmethod
    def separators(self, schema: Schema) -> Sequence[bytes]:
        """Return the bytes before a struct's first field, before each further field, and after the last field."""

    @abstractmethod
    def row_encoder(self, schema: Schema, columns: Sequence[ColumnType]) -> RowEncoder:
        """Return the encoder of rows with these columns."""

    @abstractmethod
    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Return the encoder of a schema's values; a struct is a dict."""


def interleave(separators: Sequence[bytes], columns: EncodedColumns) -> list[bytes]:
    """Join the fields of each row, given column by column, with the separators before, between and after them.

    Raises ValueError for columns of different lengths.
    """
    if len(columns[0]) == 1:  # takes a third of the general case's time
        pieces = [b""] * (2 * len(separators) - 1)
        pieces[::2] = separators
        pieces[1::2] = [field for (field,) in columns]
        return [b"".join(pieces)]
    if len(set(map(len, columns))) > 1:
        raise ValueError("all columns must have the same number of fields")
    streams: list[Iterable[bytes]] = [()] * (2 * len(separators) - 1)
    streams[::2] = map(repeat, separators)
    streams[1::2] = columns
    return list(map(b"".join, zip(*streams, strict=False)))  # not strict: `repeat` never ends

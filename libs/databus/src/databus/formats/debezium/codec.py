"""How Connect's data becomes bytes: a converter in its words, but in pieces, so that what stays is encoded once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from databus.formats.debezium.schemas import Schema
from databus.formats.debezium.types import ColumnType

#: makes the bytes of a cell that is not NULL; None: they are its text
EncodeCell: TypeAlias = Callable[[bytes], bytes] | None


class Codec(ABC):
    """One wire format."""

    #: an optional value that is null, and what stands before one that is not
    null: ClassVar[bytes]
    present: ClassVar[bytes]

    @abstractmethod
    def frame(self, topic: str, part: str, schema: Schema) -> tuple[bytes, bytes]:
        """Give what stands before and behind a record's `key` or `value`."""

    @abstractmethod
    def joints(self, schema: Schema) -> Sequence[bytes]:
        """Give what stands before the first field of a struct, before each other one, and behind the last."""

    @abstractmethod
    def cell(self, column: ColumnType) -> EncodeCell:
        """Make the encoder of a column's cells, from their text."""

    @abstractmethod
    def data(self, schema: Schema) -> Callable[[Any], bytes]:
        """Make the encoder of a schema's values; a struct is a dict."""

    @abstractmethod
    def integer(self, number: int) -> bytes:
        """Encode an integer that must not be null."""

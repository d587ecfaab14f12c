"""Decodes the format `databus`, in Kafka's records and in the files of dumps."""

from collections.abc import Callable
from typing import Any

import msgspec

from databus.block import Block
from databus.change import Texts, Values
from databus.origin import Origin
from databus.values import converter, is_bytes
from databus_binlog import Position
from databus_core.definitions import decode_definition
from databus_core.errors import SchemaMismatch
from databus_core.events import Action

#: definitions of tables that are kept, of all tables together
_KEPT = 10_000


class ClaimCheck(msgspec.Struct, frozen=True):
    """Where a value is that was too large for its topic."""

    url: str
    bytes: int
    sha256: str


class Message(msgspec.Struct, frozen=True, gc=False, rename="pascal"):
    """A message. One of `rows`, `query` and `claim_check` is there."""

    table: msgspec.Raw
    action: Action
    rows: list[list[bytes | bool | None]] | None = None
    query: bytes | None = None
    claim_check: ClaimCheck | None = None


class _Place(msgspec.Struct, frozen=True):
    Name: str
    Pos: int


class _Key(msgspec.Struct, frozen=True):
    Pos: _Place


_decode_message = msgspec.json.Decoder(Message).decode
_decode_key = msgspec.json.Decoder(_Key).decode


class DatabusRows:
    """Reads row images: lists of exact texts, `false` where the binlog lacks a column."""

    def __init__(self, definition: bytes) -> None:
        self.table = decode_definition(definition)
        self._names = [column.name for column in self.table.columns]
        self._converters = [converter(column) for column in self.table.columns]
        self._texts: list[Callable[[bytes], str | bytes]] = [
            bytes if is_bytes(column) else bytes.decode for column in self.table.columns
        ]

    def values(self, image: list[bytes | bool | None]) -> Values:
        """Return the Python values. Raises SchemaMismatch if a text does not fit its column."""
        try:
            return self._converted(image, self._converters)
        except (ValueError, ArithmeticError) as error:
            text = f"a value of {self.table.full_name} does not fit its column: {type(error).__name__}"
            raise SchemaMismatch(text) from None  # the cause quotes the value

    def texts(self, image: list[bytes | bool | None]) -> Texts:
        """Return the exact texts."""
        return self._converted(image, self._texts)

    def _converted(self, image: list[Any], converters: list[Callable[[bytes], Any]]) -> dict[str, Any]:
        cells = zip(self._names, converters, image, strict=True)
        if False in image:
            return {name: None if cell is None else read(cell) for name, read, cell in cells if cell is not False}
        return {name: None if cell is None else read(cell) for name, read, cell in cells}


class DatabusDecoder:
    """Decodes messages. What messages of the same table have in common is decoded once."""

    def __init__(self) -> None:
        self._rows: dict[bytes, DatabusRows] = {}

    def message(self, value: bytes) -> Message:
        """Decode a message. Raises SchemaMismatch."""
        try:
            return _decode_message(value)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SchemaMismatch(f"a record is not a message of format databus: {error}") from error

    def position(self, key: bytes | None) -> Position:
        """Decode the key of a record: the end of the event in the binlog. Raises SchemaMismatch."""
        try:
            place = _decode_key(key or b"").Pos
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SchemaMismatch(f"the key of a record has no position of format databus: {error}") from error
        return Position("", place.Name, place.Pos)

    def block(self, message: Message, origin: Origin, done: int = 0) -> Block:
        """Return the changes of a message that has its rows or its query; the first ones are `done`."""
        rows = self.rows_of(message)
        if message.rows is None:
            return Block(message.action, rows, origin, [], (message.query or b"").decode(errors="backslashreplace"))
        return Block(message.action, rows, origin, message.rows, done=done)

    def rows_of(self, message: Message) -> DatabusRows:
        """Return how the row images of a message are read."""
        definition = bytes(message.table)
        rows = self._rows.get(definition)
        if rows is None:
            if len(self._rows) >= _KEPT:
                self._rows.clear()
            rows = self._rows[definition] = DatabusRows(definition)
        return rows

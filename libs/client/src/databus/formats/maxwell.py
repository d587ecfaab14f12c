"""Decodes the format `maxwell-json`.

Its messages have no types. Numbers are int, or Decimal if they have a fraction or an exponent; an object or an array is
a JSON column. Everything else stays as it is written: dates and times are text, bytes are base64.
"""

from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from databus.change import Texts, Values
from databus.formats.event import Event, no_texts, position_at, table_of
from databus_core.errors import SchemaMismatch
from databus_core.events import Action, Column, Table

#: how values begin: messages of rows, and of statements
PREFIXES = (b'{"database":', b'{"type":')

_ROWS = {
    "insert": Action.INSERT,
    "bootstrap-insert": Action.INSERT,
    "update": Action.UPDATE,
    "delete": Action.DELETE,
}
_STATEMENTS = {"table-create": Action.CREATE, "table-alter": Action.ALTER, "table-drop": Action.DROP}


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Definition(msgspec.Struct, frozen=True, rename="kebab"):
    columns: list[_Named] = []
    primary_key: list[str] = []


class _Message(msgspec.Struct, frozen=True, gc=False):
    type: str
    database: str
    table: str = ""
    data: dict[str, msgspec.Raw] = {}
    old: dict[str, msgspec.Raw] = {}
    position: str = ""
    definition: _Definition = msgspec.field(default=_Definition(), name="def")
    sql: str = ""
    gtid: str = ""


_decode = msgspec.json.Decoder(_Message).decode
_decode_key = msgspec.json.Decoder(dict[str, Any] | list[Any]).decode
_document = msgspec.json.Decoder().decode
_scalar = msgspec.json.Decoder(float_hook=Decimal).decode


class MaxwellRows:
    """Reads row images: objects of JSON values."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def values(self, image: dict[str, msgspec.Raw]) -> Values:
        """Return the Python values."""
        return {name: _value(bytes(raw)) for name, raw in image.items()}

    def texts(self, image: dict[str, msgspec.Raw]) -> Texts:
        """Raise LookupError: the format has no exact texts."""
        raise no_texts(self.table, "maxwell-json")


class MaxwellDecoder:
    """Decodes messages of rows and of statements on tables."""

    def event(self, key: bytes | None, value: bytes) -> Event | None:
        """Decode a message; None if it is about neither. Raises SchemaMismatch."""
        try:
            message = _decode(value)
            names = _key_columns(_decode_key(key)) if key and message.type in _ROWS else ()
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SchemaMismatch(f"a record is not a message of format maxwell-json: {error}") from error
        file, _, offset = message.position.rpartition(":")
        position = position_at(file, int(offset or 0))
        if action := _STATEMENTS.get(message.type):
            columns = tuple(each.name for each in message.definition.columns)
            rows = _rows(message.database, message.table, columns, tuple(message.definition.primary_key))
            return Event(action, rows, query=message.sql, position=position, gtid=message.gtid)
        if not (action := _ROWS.get(message.type)):
            return None
        rows = _rows(message.database, message.table, tuple(message.data), names)
        is_snapshot = message.type == "bootstrap-insert"
        images = [message.data | message.old, message.data] if action is Action.UPDATE else [message.data]
        return Event(action, rows, images, position=position, is_snapshot=is_snapshot, gtid=message.gtid)


@lru_cache(1024)
def _rows(schema: str, name: str, columns: tuple[str, ...], key: tuple[str, ...]) -> MaxwellRows:
    return MaxwellRows(table_of(schema, name, [Column(name=each, type="", raw_type="") for each in columns], key))


def _key_columns(key: dict[str, Any] | list[Any]) -> tuple[str, ...]:
    """Return the primary key's columns, in lower case, from a record key of either format."""
    if isinstance(key, list):
        return tuple(name for member in key[2] for name in member)
    return tuple(name.removeprefix("pk.") for name in key if name.startswith("pk."))


def _value(text: bytes) -> Any:
    return _document(text) if text[:1] in (b"{", b"[") else _scalar(text)

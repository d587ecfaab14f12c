"""Decodes the format `debezium-json`.

With schemas, values have the types of their schemas (`debezium_types`). Without, they stay as they are written: dates
are numbers, decimals and bytes are base64.
"""

from base64 import b64encode, urlsafe_b64encode
from functools import lru_cache
from typing import Any

import msgspec

from databus.change import Texts, Values
from databus.formats.debezium_types import Field, from_connect
from databus.formats.event import Event, OptionsOf, no_texts, position_at, table_of
from databus_core.errors import SchemaMismatch
from databus_core.events import Action, Column, Table

_WITH_SCHEMA = b'{"schema":{"type":"struct"'
#: how values begin: with schemas; without, of rows; of schema changes, of transactions, and of heartbeats
PREFIXES = (_WITH_SCHEMA, b'{"before":', b'{"source":', b'{"status":', b'{"ts_ms":')

_ACTIONS = {"c": Action.INSERT, "r": Action.INSERT, "u": Action.UPDATE, "d": Action.DELETE, "t": Action.TRUNCATE}


class _Source(msgspec.Struct, frozen=True, gc=False):
    db: str = ""
    table: str | None = None
    file: str = ""
    pos: int = 0
    gtid: str | None = None


class _Payload(msgspec.Struct, frozen=True, gc=False):
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    source: _Source = _Source()
    op: str = ""


class _Value(msgspec.Struct, frozen=True, gc=False):
    schema: msgspec.Raw
    payload: _Payload


class _Key(msgspec.Struct, frozen=True, gc=False):
    payload: dict[str, Any]


_decode_value = msgspec.json.Decoder(_Value).decode
_decode_payload = msgspec.json.Decoder(_Payload).decode
_decode_key = msgspec.json.Decoder(_Key).decode
_decode_bare_key = msgspec.json.Decoder(dict[str, Any]).decode
_decode_schema = msgspec.json.Decoder(Field).decode


class DebeziumRows:
    """Reads row images: objects of Connect's values."""

    def __init__(self, table: Table, fields: tuple[Field, ...], placeholder: str) -> None:
        self.table = table
        self._converters = {field.field: convert for field in fields if (convert := from_connect(field))}
        binary = placeholder.encode()
        #: what stands for a value that the binlog lacks, in columns of text and of bytes
        self._absent = {placeholder, b64encode(binary).decode(), urlsafe_b64encode(binary).decode(), binary.hex()}

    def values(self, image: dict[str, Any]) -> Values:
        """Return the Python values. Raises SchemaMismatch if a value does not fit its schema."""
        try:
            return {name: self._value(name, cell) for name, cell in image.items() if not self._is_absent(cell)}
        except (ValueError, ArithmeticError, LookupError, TypeError) as error:
            text = f"a value of {self.table.full_name} does not fit its schema: {type(error).__name__}"
            raise SchemaMismatch(text) from None  # the cause quotes the value

    def texts(self, image: dict[str, Any]) -> Texts:
        """Raise LookupError: the format has no exact texts."""
        raise no_texts(self.table, "debezium-json")

    def _value(self, name: str, cell: Any) -> Any:
        convert = self._converters.get(name)
        return cell if cell is None or convert is None else convert(cell)

    def _is_absent(self, cell: Any) -> bool:
        return isinstance(cell, str) and cell in self._absent


class DebeziumDecoder:
    """Decodes messages of rows, and of TRUNCATE."""

    def __init__(self, options_of: OptionsOf) -> None:
        self._options_of = options_of

    def event(self, key: bytes | None, value: bytes) -> Event | None:
        """Decode a message; None for schema changes, transactions and heartbeats. Raises SchemaMismatch."""
        try:
            schema, payload = _parts(value)
            if not (action := _ACTIONS.get(payload.op)):
                return None
            rows = self._rows(schema, payload, _key_columns(key))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SchemaMismatch(f"a record is not a message of format debezium-json: {error}") from error
        images = [each for each in (payload.before, payload.after) if each is not None]
        query = f"TRUNCATE TABLE {rows.table.full_name}" if action is Action.TRUNCATE else None
        position = position_at(payload.source.file, payload.source.pos)
        gtid = payload.source.gtid or ""
        return Event(action, rows, images, query, position, is_snapshot=payload.op == "r", gtid=gtid)

    def _rows(self, schema: bytes, payload: _Payload, key: tuple[str, ...]) -> DebeziumRows:
        database, table = payload.source.db, payload.source.table or ""
        names = () if schema else tuple(payload.after or payload.before or ())
        placeholder = self._options_of(database, table).get("unavailable_value_placeholder", _UNAVAILABLE)
        return _rows(database, table, schema, names, key, placeholder)


_UNAVAILABLE = "__debezium_unavailable_value"


def _parts(value: bytes) -> tuple[bytes, _Payload]:
    """Decode a value; return its schema, empty if it has none, and its payload."""
    if not value.startswith(_WITH_SCHEMA):
        return b"", _decode_payload(value)
    message = _decode_value(value)
    return bytes(message.schema), message.payload


def _key_columns(key: bytes | None) -> tuple[str, ...]:
    if not key:
        return ()
    return tuple(_decode_key(key).payload if key.startswith(_WITH_SCHEMA) else _decode_bare_key(key))


@lru_cache(1024)
def _rows(
    database: str, table: str, schema: bytes, names: tuple[str, ...], key: tuple[str, ...], placeholder: str
) -> DebeziumRows:
    fields = tuple(Field(type="", field=name) for name in names)
    if schema:
        fields = next(field.fields for field in _decode_schema(schema).fields if field.field == "after")
    columns = [Column(name=each.field, type="", raw_type="", nullable=each.optional) for each in fields]
    return DebeziumRows(table_of(database, table, columns, key), fields, placeholder)

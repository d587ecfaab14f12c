"""`debezium-json`: as Connect's JsonConverter writes, with schemas and without."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from databus.events import PackedRows, Row
from databus.formats.base import Source
from databus.formats.debezium.codec import Around, Codec, RowEncoder
from databus.formats.debezium.events import Debezium
from databus.formats.debezium.options import JsonOptions
from databus.formats.debezium.schemas import Schema
from databus.formats.debezium.types import ColumnType
from databus_wire.json_rows import (
    BASE64,
    DAYS,
    DECIMAL,
    JSON,
    MICROSECONDS,
    MILLISECONDS,
    RAW,
    TEXT,
    TIME,
    ZONED,
    RowWriter,
)

_json = msgspec.json.Encoder().encode

_Cell: TypeAlias = "int | Callable[[bytes], bytes] | tuple[int, Callable[[bytes], bytes]]"
#: how the compiled writer has usual values of a schema
_USUAL = {
    "org.apache.kafka.connect.data.Decimal": DECIMAL,
    "org.apache.kafka.connect.data.Date": DAYS,
    "org.apache.kafka.connect.data.Timestamp": MILLISECONDS,
    "io.debezium.time.Date": DAYS,
    "io.debezium.time.Timestamp": MILLISECONDS,
    "io.debezium.time.MicroTimestamp": MICROSECONDS,
    "io.debezium.time.MicroTime": TIME,
    "io.debezium.time.ZonedTimestamp": ZONED,
    "io.debezium.data.Json": JSON,
}


class DebeziumJson(Debezium[JsonOptions]):
    """Keys and values as JSON."""

    options_type = JsonOptions
    reads_packed = True

    def __init__(self, source: Source, options: JsonOptions) -> None:
        super().__init__(source, options, JsonCodec(options.schemas_enable))


class JsonCodec(Codec):
    """Connect's data as JSON; bytes become base64."""

    null = b"null"
    present = b""
    integer = staticmethod(b"%d".__mod__)

    def __init__(self, schemas_enable: bool) -> None:
        self._schemas_enable = schemas_enable

    def frame(self, topic: str, part: str, schema: Schema) -> tuple[bytes, bytes]:
        """Put the schema before the data, if it is wanted."""
        if not self._schemas_enable:
            return b"", b""
        return b'{"schema":%b,"payload":' % _json(schema.json()), b"}"

    def joints(self, schema: Schema) -> Sequence[bytes]:
        """Give the names and what is between them."""
        names = [_json(name) + b":" for name, _ in schema.fields]
        return [b"{" + names[0], *(b"," + name for name in names[1:]), b"}"]

    def rows(self, schema: Schema, columns: Sequence[ColumnType]) -> RowEncoder:
        """Write them with the compiled writer."""
        return JsonRows(RowWriter([name for name, _ in schema.fields], map(_cell, columns)))

    def data(self, schema: Schema) -> Callable[[Any], bytes]:
        """Encode as it is."""
        return _json


class JsonRows(RowEncoder):
    """Encodes rows as objects."""

    def __init__(self, writer: RowWriter) -> None:
        self._writer = writer

    def some(self, rows: Sequence[Row], places: tuple[int, ...], head: bytes, tail: bytes) -> list[bytes]:
        """Encode some columns."""
        return self._writer.some(_packed(rows), places, head, tail)

    def numbered(
        self, rows: Sequence[Row], numbers: Sequence[int], around: Around, tails: bytes | Sequence[bytes]
    ) -> list[bytes]:
        """Encode rows with all around them."""
        return self._writer.numbered(_packed(rows), numbers, *around, tails)


def _packed(rows: Sequence[Row]) -> Sequence[Row] | msgspec.Raw:
    return rows.packed if isinstance(rows, PackedRows) else rows


def _cell(column: ColumnType) -> _Cell:
    """Tell how a value becomes JSON: where the writer knows how, and else, by Connect's value."""
    convert = column.convert
    if convert is int:
        return RAW
    if convert is float:
        return RAW, _real
    if convert is bytes:
        return BASE64
    if convert == bytes.decode:
        return TEXT

    def encode(text: bytes) -> bytes:
        return _json(convert(text))

    usual = _USUAL.get(column.schema.name or "")
    return (usual, encode) if usual is not None else lru_cache(4096)(encode) if column.few else encode


def _real(text: bytes) -> bytes:
    """Write a number that nobody takes for an integer."""
    return text if b"." in text or b"e" in text else text + b".0"

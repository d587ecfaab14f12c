"""`debezium-json`: as Connect's JsonConverter writes, with schemas and without."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from databus.formats.base import Source
from databus.formats.debezium.codec import Codec, EncodeCell
from databus.formats.debezium.events import Debezium
from databus.formats.debezium.options import JsonOptions
from databus.formats.debezium.schemas import Schema
from databus.formats.debezium.types import ColumnType

_json = msgspec.json.Encoder().encode


class DebeziumJson(Debezium[JsonOptions]):
    """Keys and values as JSON."""

    options_type = JsonOptions

    def __init__(self, source: Source, options: JsonOptions) -> None:
        super().__init__(source, options, JsonCodec(options.schemas_enable))


class JsonCodec(Codec):
    """Connect's data as JSON; bytes become base64."""

    null = b"null"
    present = b""

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

    def cell(self, column: ColumnType) -> EncodeCell:
        """Encode the value, unless the text is JSON already."""
        convert = column.convert
        if convert is int:
            return None
        if convert is float:
            return _real
        if column.few:
            return lru_cache(4096)(lambda text: _json(convert(text)))
        return lambda text: _json(convert(text))

    def data(self, schema: Schema) -> Callable[[Any], bytes]:
        """Encode as it is."""
        return _json

    def integer(self, number: int) -> bytes:
        """Give the digits."""
        return b"%d" % number


def _real(text: bytes) -> bytes:
    """Write a number that nobody takes for an integer."""
    return text if b"." in text or b"e" in text else text + b".0"

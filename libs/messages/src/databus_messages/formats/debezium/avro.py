"""`debezium-avro`: messages as Confluent's AvroConverter writes them, with a schema registry.

Confluent's wire format: a zero byte, the schema id as a big-endian 32-bit integer, the data in Avro's binary encoding.
"""

import struct as binary
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from databus_core.errors import PoisonError
from databus_core.events import Table
from databus_messages.formats.base import MessageSource
from databus_messages.formats.debezium.avro_rows import AvroRows, CellEncoder
from databus_messages.formats.debezium.avro_schemas import avro_name, avro_schema
from databus_messages.formats.debezium.codec import Codec, RowEncoder
from databus_messages.formats.debezium.format import Debezium
from databus_messages.formats.debezium.options import AvroOptions
from databus_messages.formats.debezium.registry import SchemaRegistry
from databus_messages.formats.debezium.schemas import Schema
from databus_messages.formats.debezium.types import ColumnType


class DebeziumAvro(Debezium[AvroOptions]):
    """Encodes keys and values as Avro."""

    options_type = AvroOptions
    calls_services = True

    def __init__(self, source: MessageSource, options: AvroOptions) -> None:
        super().__init__(source, options, AvroCodec(_registry(options)))

    @classmethod
    def check(cls, options: AvroOptions) -> None:
        """Check that the schema registry answers and accepts our credentials."""
        _registry(options).check()

    def may_block(self, table: Table) -> bool:
        """Whether the table's schemas may have to be registered first."""
        return table not in self._tables


def _registry(options: AvroOptions) -> SchemaRegistry:
    password = options.schema_registry_password.get_secret_value()
    return SchemaRegistry(str(options.schema_registry_url), options.schema_registry_user, password)


class AvroCodec(Codec):
    """Encodes Kafka Connect's data as Avro.

    An optional field is a union with null; null comes first unless the field has a default.
    """

    null = b"\x00"
    present = b"\x02"

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self.integer = _integer  # int and long have the same encoding

    def wrapper(self, topic: str, part: str, schema: Schema) -> tuple[bytes, bytes]:
        """Register the schema under the subject `TOPIC-PART`; the schema's id precedes the data."""
        _require_distinct_names(topic, schema)
        return binary.pack(">bI", 0, self._registry.register(f"{topic}-{part}", avro_schema(schema))), b""

    def separators(self, schema: Schema) -> Sequence[bytes]:
        """Return empty separators: fields follow each other directly."""
        return [b""] * (len(schema.fields) + 1)

    def row_encoder(self, schema: Schema, columns: Sequence[ColumnType]) -> RowEncoder:
        """Return the encoder of rows with these columns."""
        return AvroRows(
            [(_cell_encoder(column), column.schema.optional) for column in columns], self.null, self.integer
        )

    def encoder(self, schema: Schema) -> Callable[[Any], bytes]:
        """Return the encoder of a schema's values."""
        return _encoder(schema)


def _cell_encoder(column: ColumnType) -> CellEncoder:
    convert, encode = column.convert, _encoder(column.schema)
    if column.cacheable:
        return lru_cache(4096)(lambda text: encode(convert(text)))
    return lambda text: encode(convert(text))


def _encoder(schema: Schema) -> Callable[[Any], bytes]:
    encode = _required_encoder(schema)
    if not schema.optional:
        return encode
    null, present = (b"\x00", b"\x02") if schema.default is None else (b"\x02", b"\x00")
    return lambda value: null if value is None else present + encode(value)


def _required_encoder(schema: Schema) -> Callable[[Any], bytes]:
    if schema.type == "struct":
        fields = [(name, _encoder(field)) for name, field in schema.fields]
        return lambda value: b"".join([encode(value[name]) for name, encode in fields])
    if schema.items:
        item = _encoder(schema.items)
        return lambda values: b"".join((_integer(len(values)), *map(item, values), b"\x00")) if values else b"\x00"
    return _PRIMITIVES[schema.type]


def _integer(number: int) -> bytes:
    """Encode an integer in Avro's zigzag, variable-length form."""
    if not -(2**63) <= number < 2**63:
        raise PoisonError("a BIGINT UNSIGNED above 2^63-1 does not fit Avro's long; set bigint_unsigned=precise")
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _bytes(value: bytes) -> bytes:
    return _integer(len(value)) + value


def _string(value: str) -> bytes:
    return _bytes(value.encode())


_PRIMITIVES: dict[str, Callable[[Any], bytes]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), _integer),
    "float": binary.Struct("<f").pack,
    "double": binary.Struct("<d").pack,
    "boolean": binary.Struct("<?").pack,
    "string": _string,
    "bytes": _bytes,
}


def _require_distinct_names(topic: str, schema: Schema) -> None:
    names = Counter(avro_name(name) for name, _ in schema.fields)
    for name, field in schema.fields:
        if names[avro_name(name)] > 1:
            raise PoisonError(
                f"{topic}: column {name} gets the same Avro name as another column; rename or exclude one of them"
            )
        _require_distinct_names(topic, field)

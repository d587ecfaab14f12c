"""Read Avro as Confluent's converter writes it, into what Debezium's JSON without schemas would have."""

import base64
import json
import struct
from collections.abc import Iterator
from io import BytesIO
from typing import Any, TypeAlias

Schema: TypeAlias = Any


_PLAIN = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


class AvroReader:
    """Reads records by the schemas of a registry."""

    def __init__(self, schemas: dict[int, str]) -> None:
        self._schemas = {number: json.loads(text) for number, text in schemas.items()}

    def read(self, record: bytes) -> Any:
        magic, number = struct.unpack(">bI", record[:5])
        assert magic == 0
        data = BytesIO(record[5:])
        schema = self._schemas[number]
        value = _value(schema, data, dict(_named(schema)))
        assert not data.read()
        return value


def _named(schema: Schema, namespace: str = "") -> Iterator[tuple[str, Schema]]:
    """Give the types that are defined anywhere inside, by their names, with and without the namespace."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _named(branch, namespace)
    elif isinstance(schema, dict):
        if schema.get("type") == "record":
            namespace = schema.get("namespace", namespace)
            yield from ((schema["name"], schema), (f"{namespace}.{schema['name']}", schema))
        for inside in (*(field["type"] for field in schema.get("fields", ())), schema.get("items"), schema.get("type")):
            yield from _named(inside, namespace)


def _value(schema: Schema, data: BytesIO, names: dict[str, Schema]) -> Any:  # noqa: PLR0911 – a table: one line a type
    if isinstance(schema, list):
        return _value(schema[_integer(data)], data, names)
    if isinstance(schema, str):
        schema = {"type": schema} if schema in _PLAIN else names[schema]
    match schema["type"]:
        case "null":
            return None
        case "boolean":
            return data.read(1) == b"\x01"
        case "int" | "long":
            return _integer(data)
        case "float":
            return struct.unpack("<f", data.read(4))[0]
        case "double":
            return struct.unpack("<d", data.read(8))[0]
        case "bytes":
            return base64.b64encode(data.read(_integer(data))).decode()
        case "string":
            return data.read(_integer(data)).decode()
        case "array":
            return list(_items(schema["items"], data, names))
        case "record":
            return {field["name"]: _value(field["type"], data, names) for field in schema["fields"]}
    return _value(schema["type"], data, names)


def _items(schema: Schema, data: BytesIO, names: dict[str, Schema]) -> Any:
    while count := _integer(data):
        yield from [_value(schema, data, names) for _ in range(count)]


def _integer(data: BytesIO) -> int:
    number = shift = 0
    while True:
        byte = data.read(1)[0]
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number >> 1 ^ -(number & 1)

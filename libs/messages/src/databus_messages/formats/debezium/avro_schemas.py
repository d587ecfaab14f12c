"""Avro's schemas of Connect's, as Confluent's AvroConverter makes them."""

import re
from typing import Any

from databus_messages.formats.debezium.schemas import Schema

_PRIMITIVES = {
    "int8": "int", "int16": "int", "int32": "int", "int64": "long", "float": "float", "double": "double",
    "boolean": "boolean", "string": "string", "bytes": "bytes",
}  # fmt: skip
_LOGICAL = {
    "org.apache.kafka.connect.data.Decimal": "decimal",
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
}


def avro_schema(schema: Schema) -> Any:
    """Make Avro's schema, ready for JSON. A record that is used again is referred to by its name."""
    return _Writer().write(schema)


def avro_name(name: str) -> str:
    """Make a field's name that Avro allows, or one part of a schema's."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{name}" if name[:1].isdigit() else name


def avro_full_name(name: str) -> str:
    """Make a schema's name, with dots between its parts, that Avro allows."""
    return ".".join(map(avro_name, name.split(".")))


class _Writer:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def write(self, schema: Schema, namespace: str = "") -> Any:
        """Write a schema within a namespace; one that allows null is a union, whose first type its default has."""
        written = self._plain(schema, namespace)
        if not schema.optional:
            return written
        return ["null", written] if schema.default is None else [written, "null"]

    def _plain(self, schema: Schema, namespace: str) -> Any:
        if schema.type == "struct":
            return self._record(schema, namespace)
        if schema.items:
            return {"type": "array", "items": self.write(schema.items, namespace), **_qualities(schema)}
        plain, qualities = _PRIMITIVES[schema.type], _qualities(schema)
        return {"type": plain, **qualities} if qualities else plain

    def _record(self, schema: Schema, namespace: str) -> Any:
        full_name = avro_full_name(schema.name or "")
        own, _, name = full_name.rpartition(".")
        if full_name in self._known:
            return name if own == namespace else full_name
        self._known.add(full_name)
        place = {} if own == namespace else {"namespace": own}
        fields = [self._field(field, of, own) for field, of in schema.fields]
        return {"type": "record", "name": name, **place, "fields": fields, **_qualities(schema)}

    def _field(self, name: str, schema: Schema, namespace: str) -> dict[str, Any]:
        field = {"name": avro_name(name), "type": self.write(schema, namespace)}
        if schema.optional or schema.default is not None:
            field["default"] = schema.default
        return field


def _qualities(schema: Schema) -> dict[str, Any]:
    """Give what Connect knows and Avro does not, and Avro's own names for it."""
    logical = _LOGICAL.get(schema.name or "")
    parameters = schema.parameters or {}
    qualities = {
        "scale": int(parameters["scale"]) if logical == "decimal" else None,
        "precision": int(parameters["connect.decimal.precision"]) if logical == "decimal" else None,
        "connect.doc": schema.doc,
        "connect.version": schema.version,
        "connect.parameters": schema.parameters,
        "connect.default": schema.default,
        "connect.name": schema.name and avro_full_name(schema.name),
        "connect.type": schema.type if schema.type in {"int8", "int16"} else None,
        "logicalType": logical,
    }
    return {quality: value for quality, value in qualities.items() if value is not None}

"""Converts Kafka Connect's schemas to Avro schemas, as Confluent's AvroConverter does."""

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
    """Return the Avro schema as JSON data. A record type that occurs again is only named, as Avro requires."""
    return _AvroSchemaWriter().write(schema)


def avro_name(name: str) -> str:
    """Return a valid Avro name for a field, or for one part of a schema's name."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{name}" if name[:1].isdigit() else name


def avro_full_name(name: str) -> str:
    """Return a valid Avro name for a schema; its parts are separated by dots."""
    return ".".join(map(avro_name, name.split(".")))


class _AvroSchemaWriter:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def write(self, schema: Schema, namespace: str = "") -> Any:
        """Convert a schema; an optional one becomes a union with null. A default must be of the union's first type."""
        written = self._required(schema, namespace)
        if not schema.optional:
            return written
        return ["null", written] if schema.default is None else [written, "null"]

    def _required(self, schema: Schema, namespace: str) -> Any:
        if schema.type == "struct":
            return self._record(schema, namespace)
        if schema.items:
            return {"type": "array", "items": self.write(schema.items, namespace), **_attributes(schema)}
        primitive, attributes = _PRIMITIVES[schema.type], _attributes(schema)
        return {"type": primitive, **attributes} if attributes else primitive

    def _record(self, schema: Schema, namespace: str) -> Any:
        full_name = avro_full_name(schema.name or "")
        own, _, name = full_name.rpartition(".")
        if full_name in self._known:
            return name if own == namespace else full_name
        self._known.add(full_name)
        namespace_attribute = {} if own == namespace else {"namespace": own}
        fields = [self._field(field_name, field, own) for field_name, field in schema.fields]
        return {"type": "record", "name": name, **namespace_attribute, "fields": fields, **_attributes(schema)}

    def _field(self, name: str, schema: Schema, namespace: str) -> dict[str, Any]:
        field = {"name": avro_name(name), "type": self.write(schema, namespace)}
        if schema.optional or schema.default is not None:
            field["default"] = schema.default
        return field


def _attributes(schema: Schema) -> dict[str, Any]:
    """Return Connect's attributes, and Avro's logical type with its own attributes."""
    logical = _LOGICAL.get(schema.name or "")
    parameters = schema.parameters or {}
    attributes = {
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
    return {name: value for name, value in attributes.items() if value is not None}

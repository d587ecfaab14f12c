"""Kafka Connect schemas, and their form in JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A Connect schema."""

    #: name of the type as in JsonConverter: `float` has 32 bits, `double` has 64
    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] | None = None
    default: Any = None
    #: name and schema of each field, for a struct
    fields: tuple[tuple[str, "Schema"], ...] = ()
    #: schema of the items, for an array
    items: "Schema | None" = None

    def nullable(self) -> "Schema":
        """Return the schema of the same values and null."""
        return replace(self, optional=True)

    def json(self) -> dict[str, Any]:
        """Return the schema in JsonConverter's form; attributes that are None are left out."""
        out: dict[str, Any] = {"type": self.type}
        if self.type == "struct":
            out["fields"] = [field.json() | {"field": name} for name, field in self.fields]
        if self.items:
            out["items"] = self.items.json()
        out["optional"] = self.optional
        attributes = ("name", "version", "doc", "parameters", "default")
        return out | {name: value for name in attributes if (value := getattr(self, name)) is not None}


BOOLEAN = Schema(type="boolean")
INT16 = Schema(type="int16")
INT32 = Schema(type="int32")
INT64 = Schema(type="int64")
FLOAT32 = Schema(type="float")
FLOAT64 = Schema(type="double")
STRING = Schema(type="string")
BYTES = Schema(type="bytes")


def semantic(base: Schema, name: str, **parameters: str) -> Schema:
    """Return the schema of a semantic type: a base type with a name, version 1 and parameters."""
    return replace(base, name=name, version=1, parameters=parameters or None)


def struct(name: str, fields: Mapping[str, Schema], version: int | None = 1) -> Schema:
    """Return the schema of a struct with its fields in this order."""
    return Schema(type="struct", name=name, version=version, fields=tuple(fields.items()))


def array(items: Schema) -> Schema:
    """Return the schema of an array."""
    return Schema(type="array", items=items)

"""Schemas of Kafka Connect, as objects and as its JsonConverter writes them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A type of Connect with what names and qualifies it."""

    #: as JSON has it: `float` has 32 bits, `double` 64
    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] | None = None
    default: Any = None
    #: of a struct
    fields: tuple[tuple[str, "Schema"], ...] = ()
    #: of an array
    items: "Schema | None" = None

    def maybe(self) -> "Schema":
        """Give the schema that allows null."""
        return replace(self, optional=True)

    def json(self) -> dict[str, Any]:
        """Give the object that JsonConverter puts beside the payload; what is not set is left out."""
        out: dict[str, Any] = {"type": self.type}
        if self.type == "struct":
            out["fields"] = [field.json() | {"field": name} for name, field in self.fields]
        if self.items:
            out["items"] = self.items.json()
        out["optional"] = self.optional
        qualities = ("name", "version", "doc", "parameters", "default")
        return out | {quality: value for quality in qualities if (value := getattr(self, quality)) is not None}


BOOLEAN = Schema(type="boolean")
INT16 = Schema(type="int16")
INT32 = Schema(type="int32")
INT64 = Schema(type="int64")
FLOAT32 = Schema(type="float")
FLOAT64 = Schema(type="double")
STRING = Schema(type="string")
BYTES = Schema(type="bytes")


def semantic(base: Schema, name: str, **parameters: str) -> Schema:
    """Give a type its meaning, as version 1."""
    return replace(base, name=name, version=1, parameters=parameters or None)


def struct(name: str, fields: Mapping[str, Schema], version: int | None = 1) -> Schema:
    """Make a struct of fields in order."""
    return Schema(type="struct", name=name, version=version, fields=tuple(fields.items()))


def array(items: Schema) -> Schema:
    """Make an array."""
    return Schema(type="array", items=items)

"""Column types in Connect: the schema of each, and the conversion of canonical text (docs/reference/values.md)."""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from databus_core.errors import PoisonError
from databus_core.events import Column
from databus_messages.formats.columns import (
    BINARY,
    FLOATS,
    INTEGERS,
    SPATIAL,
    TEMPORAL,
    TEXT,
    UUID_AND_INET,
    enum_label,
    set_labels,
    type_arguments,
)
from databus_messages.formats.debezium import values
from databus_messages.formats.debezium.options import DebeziumOptions
from databus_messages.formats.debezium.schemas import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    Schema,
    array,
    semantic,
    struct,
)
from databus_messages.formats.debezium.temporal import Converter, temporal


@dataclass(frozen=True)
class ColumnType:
    """A column's schema and conversion."""

    schema: Schema
    convert: Converter
    #: whether to cache encoded values, because the column has few different values
    cacheable: bool = False


_SIGNED = {"tinyint": INT16, "smallint": INT16, "mediumint": INT32, "int": INT32, "bigint": INT64}
_UNSIGNED = _SIGNED | {"smallint": INT32, "int": INT64}
_CACHEABLE = frozenset({"bit", "date", "enum", "set", "year"})
_GEOMETRY = replace(
    struct("io.debezium.data.geometry.Geometry", {"wkb": BYTES, "srid": INT32.nullable()}),
    doc="Geometry",
)
_POINT = replace(
    struct(
        "io.debezium.data.geometry.Point",
        {"x": FLOAT64, "y": FLOAT64, "wkb": BYTES.nullable(), "srid": INT32.nullable()},
    ),
    doc="Geometry (POINT)",
)


def column_type(column: Column, options: DebeziumOptions) -> ColumnType:
    """Return a column's type in Connect. Raises PoisonError for a type that Debezium does not have."""
    describe = _DECLARED.get(declared_type(column, options)) or _TYPES.get(column.type)
    if describe is None:
        raise PoisonError(f"column {column.name}: Debezium has no type for {column.raw_type}; exclude the column")
    schema, convert = describe(column, options)
    cacheable = column.type in _CACHEABLE or schema.type == "boolean"
    return ColumnType(schema.nullable() if column.nullable else schema, convert, cacheable)


def declared_type(column: Column, options: DebeziumOptions) -> str:
    """Return `Column.declared`; empty for BOOL and BOOLEAN if the options ask for numbers."""
    return "" if options.boolean == "number" and column.type == "tinyint" else column.declared


_Type: TypeAlias = tuple[Schema, Converter]


def _integer(column: Column, options: DebeziumOptions) -> _Type:
    if column.type == "bigint" and column.unsigned and options.bigint_unsigned == "precise":
        return _decimal_schema(20, 0), values.unscaled
    return (_UNSIGNED if column.unsigned else _SIGNED)[column.type], int


def _float(column: Column, _: DebeziumOptions) -> _Type:
    # FLOAT with digits, e.g. FLOAT(7,3), has 64 bits in Connect
    return FLOAT64 if column.type == "double" or len(type_arguments(column)) == 2 else FLOAT32, float


def _decimal(column: Column, options: DebeziumOptions) -> _Type:
    match options.decimal:
        case "double":
            return FLOAT64, float
        case "string":
            return STRING, bytes.decode
    return _decimal_schema(*(type_arguments(column) or (10, 0))), values.unscaled


def _decimal_schema(precision: int, scale: int = 0) -> Schema:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return semantic(BYTES, "org.apache.kafka.connect.data.Decimal", **parameters)


def _bit(column: Column, _: DebeziumOptions) -> _Type:
    (length,) = type_arguments(column) or (1,)
    if length == 1:
        return BOOLEAN, b"1".__eq__
    size = (length + 7) // 8
    return semantic(BYTES, "io.debezium.data.Bits", length=str(length)), lambda text: int(text).to_bytes(size, "little")


def _enum(column: Column, _: DebeziumOptions) -> _Type:
    return semantic(STRING, "io.debezium.data.Enum", allowed=_allowed(column)), partial(enum_label, column)


def _set(column: Column, _: DebeziumOptions) -> _Type:
    schema = semantic(STRING, "io.debezium.data.EnumSet", allowed=_allowed(column))
    return schema, lambda text: ",".join(set_labels(column, text))


def _allowed(column: Column) -> str:
    return ",".join(label.replace(",", "\\,") for label in column.values)


_BINARY_MODES: dict[str, _Type] = {
    "bytes": (BYTES, bytes),
    "base64": (STRING, lambda text: b64encode(text).decode()),
    "base64-url-safe": (STRING, lambda text: urlsafe_b64encode(text).decode()),
    "hex": (STRING, bytes.hex),
}


def _fixed(schema: Schema, convert: Converter) -> Callable[[Column, DebeziumOptions], _Type]:
    return lambda _, __: (schema, convert)


#: `Column.declared` → the type of a column that the server stores as another type
_DECLARED = {
    **dict.fromkeys(("BOOL", "BOOLEAN"), _fixed(BOOLEAN, b"0".__ne__)),
    "JSON": _fixed(semantic(STRING, "io.debezium.data.Json"), bytes.decode),
}
_TYPES: dict[str, Callable[[Column, DebeziumOptions], _Type]] = {
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(FLOATS, _float),
    **dict.fromkeys(TEMPORAL, lambda column, options: temporal(column, options.time)),
    **dict.fromkeys(TEXT, _fixed(STRING, bytes.decode)),
    **dict.fromkeys(BINARY, lambda _, options: _BINARY_MODES[options.binary]),
    **dict.fromkeys(SPATIAL, _fixed(_GEOMETRY, values.geometry)),
    "point": _fixed(_POINT, values.point),
    "decimal": _decimal,
    "bit": _bit,
    "year": _fixed(semantic(INT32, "io.debezium.time.Year"), values.zero_padded_int),
    "enum": _enum,
    "set": _set,
    "json": _fixed(semantic(STRING, "io.debezium.data.Json"), values.compact_json),
    "vector": _fixed(semantic(array(FLOAT32), "io.debezium.data.FloatVector"), values.floats),
    "uuid": _fixed(semantic(STRING, "io.debezium.data.Uuid"), UUID_AND_INET["uuid"]),
    "inet4": _fixed(STRING, UUID_AND_INET["inet4"]),
    "inet6": _fixed(STRING, UUID_AND_INET["inet6"]),
}

"""What a column is in Connect: its schema, and how its canonical text becomes a value of that schema."""

import struct as binary
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import msgspec

from databus.errors import PoisonError
from databus.events import Column
from databus_binlog import float_text
from databus_messages.formats.columns import (
    BINARY,
    FLOATS,
    INTEGERS,
    PACKED,
    SPATIAL,
    TEMPORAL,
    TEXT,
    arguments,
    label,
    labels,
)
from databus_messages.formats.debezium.options import Options
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
from databus_messages.formats.debezium.temporal import Convert, temporal


@dataclass(frozen=True)
class ColumnType:
    """A column's schema and converter."""

    schema: Schema
    convert: Convert
    #: there are few different values, or they are often the same: results may be remembered
    few: bool = False


_SIGNED = {"tinyint": INT16, "smallint": INT16, "mediumint": INT32, "int": INT32, "bigint": INT64}
_UNSIGNED = _SIGNED | {"smallint": INT32, "int": INT64}
_FEW = frozenset({"bit", "date", "enum", "set", "year"})
_GEOMETRY = replace(
    struct("io.debezium.data.geometry.Geometry", {"wkb": BYTES, "srid": INT32.maybe()}),
    doc="Geometry",
)
_POINT = replace(
    struct(
        "io.debezium.data.geometry.Point", {"x": FLOAT64, "y": FLOAT64, "wkb": BYTES.maybe(), "srid": INT32.maybe()}
    ),
    doc="Geometry (POINT)",
)


def column_type(column: Column, options: Options) -> ColumnType:
    """Describe a column. Raises PoisonError for a type that Debezium does not have."""
    kind = _KINDS.get(column.type)
    if kind is None:
        raise PoisonError(f"column {column.name}: Debezium has no type for {column.raw_type}, exclude the column")
    schema, convert = kind(column, options)
    return ColumnType(schema.maybe() if column.nullable else schema, convert, column.type in _FEW)


_Typed: TypeAlias = tuple[Schema, Convert]


def _integer(column: Column, options: Options) -> _Typed:
    if column.type == "bigint" and column.unsigned and options.bigint_unsigned == "precise":
        return _decimal_schema(20, 0), unscaled
    return (_UNSIGNED if column.unsigned else _SIGNED)[column.type], int


def _float(column: Column, _: Options) -> _Typed:
    # FLOAT(7,3) is 64 bits wide in Connect
    return FLOAT64 if column.type == "double" or len(arguments(column)) == 2 else FLOAT32, float


def _decimal(column: Column, options: Options) -> _Typed:
    match options.decimal:
        case "double":
            return FLOAT64, float
        case "string":
            return STRING, bytes.decode
    return _decimal_schema(*(arguments(column) or (10, 0))), unscaled


def _decimal_schema(precision: int, scale: int = 0) -> Schema:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return semantic(BYTES, "org.apache.kafka.connect.data.Decimal", **parameters)


def unscaled(text: bytes) -> bytes:
    """Write a decimal without its point as Java's BigInteger does: two's complement, big endian, as short as it can."""
    number = int(text.replace(b".", b""))
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _bit(column: Column, _: Options) -> _Typed:
    (length,) = arguments(column) or (1,)
    if length == 1:
        return BOOLEAN, b"1".__eq__
    size = (length + 7) // 8
    return semantic(BYTES, "io.debezium.data.Bits", length=str(length)), lambda text: int(text).to_bytes(size, "little")


def int_of_padded(text: bytes) -> int:
    """Read a number that may have leading zeros, which JSON has not."""
    return int(text)


def _enum(column: Column, _: Options) -> _Typed:
    return semantic(STRING, "io.debezium.data.Enum", allowed=_allowed(column)), partial(label, column)


def _set(column: Column, _: Options) -> _Typed:
    schema = semantic(STRING, "io.debezium.data.EnumSet", allowed=_allowed(column))
    return schema, lambda text: ",".join(labels(column, text))


def _allowed(column: Column) -> str:
    return ",".join(value.replace(",", "\\,") for value in column.values)


def _compact(text: bytes) -> str:
    try:
        return msgspec.json.format(text, indent=-1).decode()
    except RecursionError as error:
        raise ValueError("JSON of more levels than a server takes") from error


def _floats(text: bytes) -> list[float]:
    # the shortest text of a float of 32 bits: as one of 64 bits it would show digits that it does not have
    return [float(float_text(number, single=True)) for (number,) in _unpacked("<f", text)]


def _geometry(text: bytes) -> dict[str, Any]:
    return {"wkb": text[4:], "srid": int.from_bytes(text[:4], "little") or None}


def _point(text: bytes) -> dict[str, Any]:
    ((x, y),) = _unpacked("<dd", text[9:])
    return {"x": x, "y": y, **_geometry(text)}


def _unpacked(layout: str, value: bytes) -> list[tuple[float, ...]]:
    try:
        return list(binary.iter_unpack(layout, value))
    except binary.error as error:
        raise ValueError("a value is cut off") from error


_BYTES: dict[str, _Typed] = {
    "bytes": (BYTES, bytes),
    "base64": (STRING, lambda text: b64encode(text).decode()),
    "base64-url-safe": (STRING, lambda text: urlsafe_b64encode(text).decode()),
    "hex": (STRING, bytes.hex),
}


def _always(schema: Schema, convert: Convert) -> Callable[[Column, Options], _Typed]:
    return lambda _, __: (schema, convert)


_KINDS: dict[str, Callable[[Column, Options], _Typed]] = {
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(FLOATS, _float),
    **dict.fromkeys(TEMPORAL, lambda column, options: temporal(column, options.time)),
    **dict.fromkeys(TEXT, _always(STRING, bytes.decode)),
    **dict.fromkeys(BINARY, lambda _, options: _BYTES[options.binary]),
    **dict.fromkeys(SPATIAL, _always(_GEOMETRY, _geometry)),
    "point": _always(_POINT, _point),
    "decimal": _decimal,
    "bit": _bit,
    "year": _always(semantic(INT32, "io.debezium.time.Year"), int_of_padded),
    "enum": _enum,
    "set": _set,
    "json": _always(semantic(STRING, "io.debezium.data.Json"), _compact),
    "vector": _always(semantic(array(FLOAT32), "io.debezium.data.FloatVector"), _floats),
    "uuid": _always(semantic(STRING, "io.debezium.data.Uuid"), PACKED["uuid"]),
    "inet4": _always(STRING, PACKED["inet4"]),
    "inet6": _always(STRING, PACKED["inet6"]),
}

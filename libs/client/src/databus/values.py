"""Python values of a row's exact texts (docs/reference/values.md).

A value that the Python type does not have, such as the date 0000-00-00, stays text: it is never another value and never
None.
"""

import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from databus_core.definitions import sized_type
from databus_core.events import Column

#: converts the text of a value that is not NULL
Converter: TypeAlias = Callable[[bytes], Any]

_BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_GEOMETRIES = {
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
}


def converter(column: Column) -> Converter:
    """Return the function that turns a text of this column into a Python value.

    docs/reference/client.md lists the types. Raises ValueError at a text that the column cannot have.
    """
    match sized_type(column)[0]:
        case "enum":
            return partial(_label, ("", *column.values))
        case "set":
            return partial(_labels, column.values)
        case kind:
            return _CONVERTERS.get(kind, bytes)


def labels_of(column: Column) -> Callable[[int], str] | None:
    """Return the function that gives the text of an ENUM or SET, as the server prints it; None for other columns."""
    match sized_type(column)[0]:
        case "enum":
            return partial(_label, ("", *column.values))
        case "set":
            return lambda bits: ",".join(_chosen(column.values, bits))
    return None


def is_bytes(column: Column) -> bool:
    """Return whether the texts of a column are bytes, and not UTF-8."""
    return converter(column) in _NOT_TEXT


def _decimal(text: bytes) -> Decimal:
    return Decimal(text.decode())


def _date(text: bytes) -> date | str:
    try:
        return date.fromisoformat(text.decode())
    except ValueError:
        return text.decode()


def _datetime(text: bytes) -> datetime | str:
    try:
        return datetime.fromisoformat(text.decode())
    except ValueError:
        return text.decode()


def _timestamp(text: bytes) -> datetime | str:
    try:
        return datetime.fromisoformat(text.decode() + "+00:00")
    except ValueError:
        return text.decode()


def _time(text: bytes) -> timedelta:
    hours, minutes, seconds = text.decode().lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    length = timedelta(
        hours=int(hours), minutes=int(minutes), seconds=int(whole), microseconds=int(fraction.ljust(6, "0"))
    )
    return -length if text.startswith(b"-") else length


def _label(labels: Sequence[str], text: bytes | int) -> str:
    index = int(text)
    if index >= len(labels):
        raise ValueError("an ENUM has a value without a label")
    return labels[index]


def _labels(labels: Sequence[str], text: bytes) -> set[str]:
    return set(_chosen(labels, int(text)))


def _chosen(labels: Sequence[str], bits: int) -> list[str]:
    if bits >> len(labels):
        raise ValueError("a SET has a value without a label")
    return [label for index, label in enumerate(labels) if bits >> index & 1]


def _floats(text: bytes) -> list[float]:
    return [value for (value,) in struct.iter_unpack("<f", text)]


def _uuid(text: bytes) -> UUID:
    return UUID(bytes=text)


_CONVERTERS: dict[str, Converter] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"), int),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), bytes.decode),
    **dict.fromkeys(("float", "double"), float),
    "decimal": _decimal,
    "date": _date,
    "datetime": _datetime,
    "timestamp": _timestamp,
    "time": _time,
    "json": msgspec.json.Decoder().decode,
    "vector": _floats,
    "uuid": _uuid,
    "inet4": IPv4Address,
    "inet6": IPv6Address,
    **dict.fromkeys(_BYTES | _GEOMETRIES, bytes),
}
_NOT_TEXT: tuple[Converter, ...] = (bytes, _floats, _uuid, IPv4Address, IPv6Address)

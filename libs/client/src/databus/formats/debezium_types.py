"""Python values of the types of Kafka Connect that Debezium's schemas name.

A value that the Python type does not have stays text or number: it is never another value and never None.
"""

import struct
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

#: converts a value of Connect, as JsonConverter writes it, that is not null
FromConnect: TypeAlias = Callable[[Any], Any]

_decode_json = msgspec.json.Decoder().decode
_EPOCH = datetime(1970, 1, 1)
#: the calendar repeats after these days; Python has no year 0, but MySQL has
_DAYS_OF_400_YEARS = 146_097


class Field(msgspec.Struct, frozen=True):
    """A field of a Connect schema."""

    type: str
    field: str = ""
    name: str = ""
    optional: bool = False
    parameters: dict[str, str] = {}
    fields: tuple["Field", ...] = ()


def from_connect(field: Field) -> FromConnect | None:
    """Return the function that turns values of a field into Python values; None if they are the same."""
    if field.name.endswith(".Decimal"):
        return partial(_decimal, int(field.parameters["scale"]))
    return _NAMED.get(field.name) or (b64decode if field.type == "bytes" else None)


def _decimal(scale: int, text: str) -> Decimal:
    number = int.from_bytes(b64decode(text), "big", signed=True)
    sign, digits, _ = Decimal(number).as_tuple()
    return Decimal((sign, digits, -scale))


def _bits(text: str) -> int:
    return int.from_bytes(b64decode(text), "little")


def _date(days: int) -> date | str:
    moment = _moment(timedelta(days=1), days)
    return moment.date() if isinstance(moment, datetime) else moment[:10]


def _moment(unit: timedelta, count: int) -> datetime | str:
    try:
        return _EPOCH + count * unit
    except OverflowError:
        later = _EPOCH + timedelta(days=_DAYS_OF_400_YEARS) + count * unit
        return f"0000{later.isoformat(' ')[4:]}"


def _nanoseconds(count: int) -> datetime | str:
    return _moment(timedelta(microseconds=1), count // 1000)


def _duration(unit: timedelta, count: int) -> timedelta:
    return count * unit


def _nano_time(count: int) -> timedelta:
    return timedelta(microseconds=count // 1000)


def _iso(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        return text


def _iso_date(text: str) -> date | str:
    try:
        return date.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        return text


def _iso_time(text: str) -> timedelta:
    hours, minutes, seconds = text.removesuffix("Z").lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    length = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(whole))
    length += timedelta(microseconds=int(fraction.ljust(6, "0")))
    return -length if text.startswith("-") else length


def _zoned(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _document(text: str) -> Any:
    try:
        return _decode_json(text)
    except msgspec.ValidationError:  # a number with too many digits
        return text


def _labels(text: str) -> set[str]:
    return set(text.split(",")) if text else set()


def _geometry(value: dict[str, Any]) -> bytes:
    return int(value["srid"] or 0).to_bytes(4, "little") + b64decode(value["wkb"])


def _single(values: list[float]) -> list[float]:
    """Return floats of 32 bits, which are written with as few digits as tell them apart."""
    return [struct.unpack("<f", struct.pack("<f", value))[0] for value in values]


_CONNECT, _TIME, _DATA = "org.apache.kafka.connect.data.", "io.debezium.time.", "io.debezium.data."
_MICROSECOND, _MILLISECOND = timedelta(microseconds=1), timedelta(milliseconds=1)
_NAMED: dict[str, FromConnect] = {
    f"{_TIME}Date": _date,
    f"{_CONNECT}Date": _date,
    f"{_TIME}IsoDate": _iso_date,
    f"{_TIME}Timestamp": partial(_moment, _MILLISECOND),
    f"{_CONNECT}Timestamp": partial(_moment, _MILLISECOND),
    f"{_TIME}MicroTimestamp": partial(_moment, _MICROSECOND),
    f"{_TIME}NanoTimestamp": _nanoseconds,
    f"{_TIME}IsoTimestamp": _iso,
    f"{_TIME}ZonedTimestamp": _zoned,
    f"{_TIME}MicroTime": partial(_duration, _MICROSECOND),
    f"{_TIME}NanoTime": _nano_time,
    f"{_CONNECT}Time": partial(_duration, _MILLISECOND),
    f"{_TIME}IsoTime": _iso_time,
    f"{_DATA}Bits": _bits,
    f"{_DATA}EnumSet": _labels,
    f"{_DATA}Json": _document,
    f"{_DATA}Uuid": UUID,
    f"{_DATA}FloatVector": _single,
    f"{_DATA}geometry.Geometry": _geometry,
    f"{_DATA}geometry.Point": _geometry,
}

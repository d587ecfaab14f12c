"""DATE, TIME, DATETIME and TIMESTAMP in the modes of `time.precision.mode`.

A zero or impossible date becomes null in a nullable column, and the epoch in a NOT NULL column.
"""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

from databus_core.errors import PoisonError
from databus_core.events import Column
from databus_messages.formats.columns import fraction_digits
from databus_messages.formats.debezium.options import TimeMode
from databus_messages.formats.debezium.schemas import INT32, INT64, STRING, Schema, semantic

#: converts canonical text (docs/reference/values.md) to Connect's value; raises PoisonError for a value that the time
#: mode cannot express, and ValueError or LookupError for an invalid value
Converter: TypeAlias = Callable[[bytes], Any]

_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_DAYS_OF_400_YEARS = 146_097
_MICROSECOND = timedelta(microseconds=1)
_DAY_US = 86_400_000_000


def temporal(column: Column, mode: TimeMode) -> tuple[Schema, Converter]:
    """Return the schema and the converter of a DATE, TIME, DATETIME or TIMESTAMP column."""
    schema, convert, epoch = _TYPES[column.type](column, mode)
    return schema, convert if column.nullable or epoch is None else _or_epoch(convert, epoch)


#: schema, converter, and the epoch as Connect's value; None instead of the epoch if the converter never returns None
_TemporalType: TypeAlias = tuple[Schema, Converter, Any]


def _date(_: Column, mode: TimeMode) -> _TemporalType:
    if mode == "isostring":
        return semantic(STRING, "io.debezium.time.IsoDate"), _iso_date, "1970-01-01Z"
    name = "org.apache.kafka.connect.data.Date" if mode == "connect" else "io.debezium.time.Date"
    return semantic(INT32, name), days, 0


def _time(column: Column, mode: TimeMode) -> _TemporalType:
    match mode:
        case "connect":
            return semantic(INT32, "org.apache.kafka.connect.data.Time"), partial(_connect_time, column.name), None
        case "isostring":
            return semantic(STRING, "io.debezium.time.IsoTime"), _iso, None
        case "nanoseconds":
            return semantic(INT64, "io.debezium.time.NanoTime"), lambda text: time_us(text) * 1000, None
    return semantic(INT64, "io.debezium.time.MicroTime"), time_us, None


def _datetime(column: Column, mode: TimeMode) -> _TemporalType:
    match mode:
        case "connect":
            return semantic(INT64, "org.apache.kafka.connect.data.Timestamp"), _milliseconds, 0
        case "isostring":
            return semantic(STRING, "io.debezium.time.IsoTimestamp"), _iso_timestamp, "1970-01-01T00:00:00Z"
        case "nanoseconds":
            return semantic(INT64, "io.debezium.time.NanoTimestamp"), partial(_nanoseconds, column.name), 0
        case "adaptive_time_microseconds" if fraction_digits(column) <= 3:
            return semantic(INT64, "io.debezium.time.Timestamp"), _milliseconds, 0
    return semantic(INT64, "io.debezium.time.MicroTimestamp"), datetime_us, 0


def _timestamp(column: Column, _: TimeMode) -> _TemporalType:
    digits = fraction_digits(column)
    epoch = f"1970-01-01T00:00:00{'.' if digits else ''}{'0' * digits}Z"
    return semantic(STRING, "io.debezium.time.ZonedTimestamp"), _zoned, epoch


_TYPES: dict[str, Callable[[Column, TimeMode], _TemporalType]] = {
    "date": _date, "time": _time, "datetime": _datetime, "timestamp": _timestamp
}  # fmt: skip


def _or_epoch(convert: Converter, epoch: Any) -> Converter:
    def convert_or_epoch(text: bytes) -> Any:
        value = convert(text)
        return epoch if value is None else value

    return convert_or_epoch


def days(text: bytes) -> int | None:
    """Return the days since 1970-01-01 of a date; None if the date does not exist."""
    year, rest = text[:4].decode(), text[4:].decode()
    try:
        if year == "0000":  # Python has no year 0; the calendar repeats every 400 years
            return date.fromisoformat(f"0400{rest}").toordinal() - _DAYS_OF_400_YEARS - _EPOCH_DAY
        return date.fromisoformat(year + rest).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def datetime_us(text: bytes) -> int | None:
    """Return the microseconds since 1970 of a DATETIME, read as UTC; None if its date does not exist."""
    try:
        return (datetime.fromisoformat(text.decode()) - _EPOCH) // _MICROSECOND
    except ValueError:
        day = days(text[:10])
        return None if day is None else day * _DAY_US + time_us(text[11:])


def time_us(text: bytes) -> int:
    """Return the microseconds of a TIME, which may be negative or longer than a day."""
    hours, minutes, seconds = text.lstrip(b"-").split(b":")
    whole, _, fraction = seconds.partition(b".")
    count = ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000 + int(fraction.ljust(6, b"0"))
    return -count if text.startswith(b"-") else count


def _milliseconds(text: bytes) -> int | None:
    microseconds = datetime_us(text)
    return None if microseconds is None else microseconds // 1000


def _nanoseconds(column: str, text: bytes) -> int | None:
    microseconds = datetime_us(text)
    if microseconds is None:
        return None
    if not -(2**63) <= microseconds * 1000 < 2**63:
        raise PoisonError(
            f"column {column}: with time=nanoseconds a DATETIME before 1678 or after 2262 does not fit 64 bits; "
            "use another time mode"
        )
    return microseconds * 1000


def _connect_time(column: str, text: bytes) -> int:
    microseconds = time_us(text)
    if not 0 <= microseconds <= _DAY_US:  # Connect's Time includes the end of the day
        raise PoisonError(
            f"column {column}: time=connect cannot express a negative TIME or one of more than 24 hours; "
            "use another time mode"
        )
    return microseconds // 1000


def _iso_date(text: bytes) -> str | None:
    return None if days(text) is None else f"{text.decode()}Z"


def _iso_timestamp(text: bytes) -> str | None:
    return None if days(text[:10]) is None else _iso(text).replace(" ", "T")


def _iso(text: bytes) -> str:
    value = text.decode()
    return f"{value.rstrip('0').rstrip('.') if '.' in value else value}Z"


def _zoned(text: bytes) -> str | None:
    return None if text.startswith(b"0") else f"{text.decode().replace(' ', 'T')}Z"

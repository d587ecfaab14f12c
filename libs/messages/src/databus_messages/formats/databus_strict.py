"""The value text of the original Go server, for consumers that depend on it (`compat: strict`).

It loses some of what there is. Reproduced is all that follows from a value's exact text: unsigned numbers become
signed; FLOAT, DOUBLE and DECIMAL have four decimals; BIT(64) and SETs of 64 labels are signed; ENUMs and SETs of more
than one byte have their bytes swapped; YEAR 0000 is 1900; BINARY has no zero bytes at its end; DATETIME has six digits
of a second, or none if they are zero; TIMESTAMP is in the time zone of this process, to the second; TIME(1), (3), (5)
and (6) are always 00:00:00, and so is TIME(2) or (4) below a second; text is in its column's character set, by the
first of a character's codes; JSON is what Go's encoder makes of it.

Not reproduced is what the exact text does not tell: strings of 128 bytes and more in JSON are not cut; dates and times
in JSON, which its text does not tell from strings, stay as MySQL prints them; columns in the binary format of before
MySQL 5.6.
"""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias

from databus.errors import PoisonError
from databus.events import Column, Table
from databus_binlog import charsets
from databus_messages.formats.columns import PACKED, TEXT, fraction_digits
from databus_messages.formats.go_json import marshal

#: makes the original's text of a value's text; None: they are the same
Text: TypeAlias = Callable[[bytes], bytes] | None

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_MIDNIGHT = b"00:00:00"


def strict_columns(table: Table) -> tuple[Text, ...]:
    """Choose what makes the original's text of each column's values. It raises PoisonError for what cannot be told."""
    return tuple(_guarded(table, column, _text(column)) for column in table.columns)


def _guarded(table: Table, column: Column, text: Text) -> Text:
    if text is None:
        return None

    def guarded(value: bytes) -> bytes:
        try:
            return text(value)
        except (ValueError, LookupError):  # not chained: it could show the value
            name = f"{table.schema}.{table.name}.{column.name}"
            raise PoisonError(f"a value of {name} has no text in the original's form") from None

    return guarded


def _text(column: Column) -> Text:
    if column.type in _BITS:
        return partial(_signed, _BITS[column.type]) if column.unsigned else None
    if column.type == "enum":
        return partial(_swapped, 2) if len(column.values) > 255 else None
    if column.type == "set":
        size = _set_size(len(column.values))
        return partial(_swapped, size) if size > 1 else None
    if column.type == "time":
        return _TIMES.get(fraction_digits(column), _midnight)
    if column.type in TEXT and column.charset not in {"", *charsets.UTF8}:
        return partial(_in_charset, column.charset)
    return _TEXTS.get(column.type)


def _signed(bits: int, text: bytes) -> bytes:
    number = int(text)
    return b"%d" % (number - (1 << bits) if number >> (bits - 1) else number)


def _set_size(labels: int) -> int:
    size = (labels + 7) // 8
    return size if size <= 4 else 8


def _swapped(size: int, text: bytes) -> bytes:
    """Read what is little endian as big endian; eight bytes are signed."""
    return b"%d" % int.from_bytes(int(text).to_bytes(size, "little"), "big", signed=size == 8)


def _four_decimals(text: bytes) -> bytes:
    return b"%.4f" % float(text)


def _four_decimals_of_float(text: bytes) -> bytes:
    (number,) = struct.unpack("f", struct.pack("f", float(text)))
    return b"%.4f" % number


def _year(text: bytes) -> bytes:
    return b"1900" if text == b"0000" else text


def _datetime(text: bytes) -> bytes:
    seconds, _, fraction = text.partition(b".")
    return b"%b.%b" % (seconds, fraction.ljust(6, b"0")) if fraction.strip(b"0") else seconds


def _timestamp(text: bytes) -> bytes:
    seconds = text[:19].decode()
    if seconds == "0000-00-00 00:00:00":
        return text[:19]
    moment = datetime.fromisoformat(seconds).replace(tzinfo=UTC).astimezone()
    return moment.replace(tzinfo=None).isoformat(" ").encode()


def _midnight(_: bytes) -> bytes:
    return _MIDNIGHT


def _time(text: bytes) -> bytes:
    """Drop what is below a second of a time that has no seconds, with its sign."""
    return _MIDNIGHT if text.lstrip(b"-").startswith(_MIDNIGHT) else _datetime(text)


def _in_charset(charset: str, text: bytes) -> bytes:
    return charsets.to_bytes(text.decode(), charset)


#: by digits of a second; at all others it is always midnight
_TIMES: Mapping[int, Text] = {0: None, 2: _time, 4: _time}
_TEXTS: Mapping[str, Text] = {
    "year": _year,
    "float": _four_decimals_of_float,
    "double": _four_decimals,
    "decimal": _four_decimals,
    "bit": partial(_signed, 64),
    "binary": lambda value: value.rstrip(b"\0"),
    "datetime": _datetime,
    "timestamp": _timestamp,
    "json": marshal,
    **dict.fromkeys(PACKED, lambda value: value.rstrip(b"\0")),
}

"""Value text as the original Go server wrote it, for consumers that depend on it (`compat: strict`).

The conversion loses information:

* Unsigned integers and BIT(64) are read as signed.
* FLOAT, DOUBLE and DECIMAL have four decimals.
* ENUMs and SETs of more than one byte have their bytes swapped; a SET of eight bytes is also read as signed.
* YEAR 0000 is 1900.
* BINARY and MariaDB's UUID and INET types lose their trailing zero bytes.
* DATETIME has six fractional digits, or none if they are all zero.
* TIMESTAMP is in this process's time zone, without fractional digits.
* TIME(1), (3), (5) and (6) are always 00:00:00. TIME(2) and (4) are 00:00:00 below one second; otherwise they have six
  fractional digits, or none, as a DATETIME has.
* Text is in its column's character set. If the set has several codes for one character, mostly the first is used.
* JSON is rewritten as Go's encoder writes it.

Three properties of the original are not reproduced, because canonical text lacks what they depend on: the original cuts
JSON strings of 128 bytes and more, does not write dates and times in JSON as MySQL prints them, and treats columns in
the binary format from before MySQL 5.6 differently.
"""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias

from databus_binlog import charsets
from databus_core.errors import PoisonError
from databus_core.events import Column, Table
from databus_messages.formats.columns import LABELLED, TEXT, UUID_AND_INET, fraction_digits
from databus_messages.formats.go_json import marshal

#: converts canonical text (docs/reference/values.md) to the original's text; None: the two texts are the same
Text: TypeAlias = Callable[[bytes], bytes] | None

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_MIDNIGHT = b"00:00:00"


def strict_columns(table: Table) -> tuple[Text, ...]:
    """Return each column's converter. It raises PoisonError for a value that the original cannot express."""
    return tuple(_guarded(table, column, _text(column)) for column in table.columns)


def _guarded(table: Table, column: Column, text: Text) -> Text:
    if text is None:
        return None

    def convert(value: bytes) -> bytes:
        try:
            return text(value)
        except (ValueError, LookupError):  # not chained: the cause quotes the value
            name = f"{table.full_name}.{column.name}"
            raise PoisonError(
                f"column {name} has a value that `compat: strict` cannot express; use `compat: exact`"
            ) from None

    return convert


def _text(column: Column) -> Text:
    if column.type in _BITS:
        return partial(_signed, _BITS[column.type]) if column.unsigned else None
    if column.type in LABELLED:
        return _number(column)
    if column.type == "time":
        return _TIMES.get(fraction_digits(column), _midnight)
    if column.type in TEXT and column.charset not in {"", *charsets.UTF8}:
        return partial(_in_charset, column.charset)
    return _TEXTS.get(column.type)


def _signed(bits: int, text: bytes) -> bytes:
    number = int(text)
    return b"%d" % (number - (1 << bits) if number >> (bits - 1) else number)


def _number(column: Column) -> Text:
    """Return the converter of an ENUM or SET, whose bytes the original swaps. The labels show how many there are."""
    if column.lacks_labels:
        return _unlabelled
    size = _set_size(len(column.values)) if column.type == "set" else 1 + (len(column.values) > 255)
    return partial(_swapped, size) if size > 1 else None


def _unlabelled(_: bytes) -> bytes:
    raise ValueError


def _set_size(labels: int) -> int:
    size = (labels + 7) // 8
    return size if size <= 4 else 8


def _swapped(size: int, text: bytes) -> bytes:
    """Reverse the byte order; the original reads eight bytes as signed."""
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
    """Write a TIME below one second as midnight: the original drops its fraction and sign."""
    return _MIDNIGHT if text.lstrip(b"-").startswith(_MIDNIGHT) else _datetime(text)


def _in_charset(charset: str, text: bytes) -> bytes:
    return charsets.to_bytes(text.decode(), charset)


#: number of fractional digits → conversion; with any other number the original writes midnight
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
    **dict.fromkeys(UUID_AND_INET, lambda value: value.rstrip(b"\0")),
}

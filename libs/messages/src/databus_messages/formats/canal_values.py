"""Value text of canal's formats, where every value is a string.

An ENUM is its index, a SET its bit mask. The bytes of BLOB, BINARY and geometries are mapped to U+0000…U+00FF
(ISO-8859-1). FLOAT and DOUBLE are written as Java writes them. Values that canal distorts are exact here: text in any
character set is converted correctly, DECIMAL keeps its scale, BINARY(n) keeps all n bytes, and TIMESTAMP is in the zone
of the `time_zone` option instead of the process's zone. MariaDB's UUID and INET types and VECTOR, which canal does
not know, are bytes like BLOB.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from operator import methodcaller
from struct import pack, unpack
from typing import TypeAlias
from zoneinfo import ZoneInfo

from databus_core.events import Column, Row, Table
from databus_messages.formats import columns
from databus_messages.formats.canal import is_binary
from databus_wire import json_rows
from databus_wire.json_rows import PLAIN, TEXT, RowWriter

#: Converts a value's canonical text (docs/reference/values.md) to canal's. Raises ValueError for an invalid value.
Converter: TypeAlias = Callable[[bytes], str]

_LATIN_1: Converter = methodcaller("decode", "latin-1")
_NEEDS_ESCAPES = columns.TEXT | {"json"}


@dataclass(frozen=True)
class JavaFloat:
    """Writes a FLOAT or DOUBLE like Java's `toString`, which since JDK 19 gives the shortest text."""

    #: whether the column is a FLOAT
    single: bool

    def __call__(self, cell: bytes) -> str:
        """Return the text. Raises ValueError if the cell is not a number."""
        value, text = float(cell), cell.decode()
        if 1e-3 <= abs(value) < 1e7:
            return text if "." in text else text + ".0"
        if not value:
            return "-0.0" if text.startswith("-") else "0.0"
        sign, digits, exponent = Decimal(text).normalize().as_tuple()
        mantissa, power = "".join(map(str, digits)), int(exponent) + len(digits) - 1
        if len(digits) == 1 and power < -40:  # Java takes the nearest text of two digits: 4.9E-324, not 5.0E-324
            exact = unpack("f", pack("f", value))[0] if self.single else value
            nearest, _, shown_power = f"{abs(exact):.1e}".partition("e")
            mantissa, power = nearest.replace(".", "").rstrip("0"), int(shown_power)
        return f"{'-' * sign}{mantissa[0]}.{mantissa[1:] or '0'}E{power}"


def converter(column: Column, time_zone: str) -> Converter | None:
    """Return the converter of a column's values; None if canal's text is the canonical text."""
    if column.type in columns.FLOATS:
        return JavaFloat(single=column.type == "float")
    if column.type == "timestamp" and time_zone != "UTC":
        return partial(_local_time, ZoneInfo(time_zone))
    return _LATIN_1 if is_binary(column) else None


def _local_time(zone: ZoneInfo, cell: bytes) -> str:
    text = cell.decode()
    if text.startswith("0000"):
        return text
    moment = datetime.fromisoformat(text[:19]).replace(tzinfo=UTC).astimezone(zone)
    return moment.strftime("%Y-%m-%d %H:%M:%S") + text[19:]


class RowTexts:
    """Converts the rows of a table to strings; NULL becomes None."""

    def __init__(self, table: Table, time_zone: str) -> None:
        converters = enumerate(converter(column, time_zone) for column in table.columns)
        self._converters = {index: convert for index, convert in converters if convert}

    def of(self, row: Row) -> list[str | None]:
        """Convert a row. Raises ValueError if a value does not fit its column."""
        cells: list[bytes | str | None] = [*row]
        for index, convert in self._converters.items():
            cell = row[index]
            if cell is not None:
                cells[index] = convert(cell)
        return [cell.decode() if isinstance(cell, bytes) else cell for cell in cells]


def row_writer(table: Table, time_zone: str) -> RowWriter:
    """Return the writer of rows as JSON objects of strings and nulls."""
    names = [column.name for column in table.columns]
    return RowWriter(names, [_json_converter(column, time_zone) for column in table.columns])


def json_string(column: Column) -> int:
    """Return the `RowWriter` kind that writes canonical text as a string; numbers and times need no escapes."""
    return TEXT if column.type in _NEEDS_ESCAPES else PLAIN


def _json_converter(column: Column, time_zone: str) -> "int | Converter | tuple[int, Converter]":
    convert = converter(column, time_zone)
    if convert is None:
        return json_string(column)
    if convert is _LATIN_1:
        return json_rows.LATIN_1
    # the writer copies short decimals (`RowWriter`), which JavaFloat would not change
    return (PLAIN, convert) if isinstance(convert, JavaFloat) else convert

"""Rows as text: the strings of a row's values, and what writes the JSON objects of these."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import methodcaller
from struct import pack, unpack
from typing import TypeAlias

from databus.events import Column, Row
from databus.formats.columns import TEXT as TEXTS
from databus_wire import json_rows
from databus_wire.json_rows import PLAIN, TEXT, RowWriter

#: Makes the text of a value from the canonical one. Raises ValueError for one that is none of its column's.
Converter: TypeAlias = Callable[[bytes], str]
#: for bytes that become U+0000…U+00FF
LATIN_1: Converter = methodcaller("decode", "latin-1")

_WORDS = TEXTS | {"json"}


@dataclass(frozen=True)
class JavaFloat:
    """Writes a FLOAT or DOUBLE as Java's `toString` does (since 19, where it gives the shortest text)."""

    #: FLOAT
    single: bool

    def __call__(self, cell: bytes) -> str:
        """Give the text. Raises ValueError for what is no number."""
        value, text = float(cell), cell.decode()
        if 1e-3 <= abs(value) < 1e7:
            return text if "." in text else text + ".0"
        if not value:
            return "-0.0" if text.startswith("-") else "0.0"
        sign, digits, exponent = Decimal(text).normalize().as_tuple()
        mantissa, power = "".join(map(str, digits)), int(exponent) + len(digits) - 1
        if len(digits) == 1 and power < -40:  # of texts with two digits Java takes the nearest: 4.9E-324, not 5.0E-324
            exact = unpack("f", pack("f", value))[0] if self.single else value
            near, _, shown = f"{abs(exact):.1e}".partition("e")
            mantissa, power = near.replace(".", "").rstrip("0"), int(shown)
        return f"{'-' * sign}{mantissa[0]}.{mantissa[1:] or '0'}E{power}"


class RowTexts:
    """Makes strings of a table's values; None is NULL."""

    def __init__(self, converters: Iterable[Converter | None]) -> None:
        """Take the columns' converters; None: the text is the canonical one."""
        self._converters = {place: convert for place, convert in enumerate(converters) if convert}

    def of(self, row: Row) -> list[str | None]:
        """Give those of a row. Raises ValueError for a value that is none of its column's."""
        cells: list[bytes | str | None] = [*row]
        for place, convert in self._converters.items():
            cell = row[place]
            if cell is not None:
                cells[place] = convert(cell)
        return [cell.decode() if isinstance(cell, bytes) else cell for cell in cells]


def row_writer(columns: Sequence[Column], converters: Iterable[Converter | None]) -> RowWriter:
    """Make the writer of a table's rows as JSON objects of strings and nulls."""
    return RowWriter([column.name for column in columns], map(_json_of, columns, converters))


def json_text(column: Column) -> int:
    """Tell how a string is written of a text that is the canonical one: that of numbers and times needs no escapes."""
    return TEXT if column.type in _WORDS else PLAIN


def _json_of(column: Column, convert: Converter | None) -> "int | Converter | tuple[int, Converter]":
    if convert is None:
        return json_text(column)
    if convert is LATIN_1:
        return json_rows.LATIN_1
    # JavaFloat leaves short decimals as they are
    return (PLAIN, convert) if isinstance(convert, JavaFloat) else convert

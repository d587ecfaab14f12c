"""Geometries as well-known text in the layout of JTS, Java's geometry library: `POLYGON ((0 0, 1 0, 1 1, 0 0))`."""

import struct
from decimal import Decimal
from typing import Any

_NAMES = {
    1: "POINT",
    2: "LINESTRING",
    3: "POLYGON",
    4: "MULTIPOINT",
    5: "MULTILINESTRING",
    6: "MULTIPOLYGON",
    7: "GEOMETRYCOLLECTION",
}
_POINT, _LINESTRING, _POLYGON, _COLLECTION = 1, 2, 3, 7
_SRID_BYTES = 4


def well_known_text(value: bytes) -> str:
    """Convert a geometry's value (SRID and WKB); the text has no SRID. Raises ValueError for malformed WKB."""
    reader = _WkbReader(value)
    try:
        text = reader.geometry(named=True)
    except (struct.error, KeyError, RecursionError):
        text = ""
    if not text or reader.offset != len(value):
        raise ValueError("not a geometry in WKB")
    return text


class _WkbReader:
    """Reads WKB (OGC 06-103r4, section 8): byte order, type, then coordinates, or the number of parts and the parts."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order = "<"
        self.offset = _SRID_BYTES

    def geometry(self, *, named: bool) -> str:
        """Read one geometry; write its type name if `named`.

        JTS omits the type names of the parts of a MULTIPOINT, MULTILINESTRING or MULTIPOLYGON.
        """
        self._order = "<" if self._read("B")[0] else ">"
        kind = self._count()
        name = _NAMES[kind]
        if kind == _POINT:
            body = f"({self._coordinates(1)})"
        elif kind == _LINESTRING:
            body = self._line()
        elif kind == _POLYGON:
            body = _parts([self._line() for _ in range(self._count())])
        else:
            body = _parts([self.geometry(named=kind == _COLLECTION) for _ in range(self._count())])
        return f"{name} {body}" if named else body

    def _line(self) -> str:
        count = self._count()
        return f"({self._coordinates(count)})" if count else "EMPTY"

    def _coordinates(self, count: int) -> str:
        numbers = [_number(number) for number in self._read(f"{2 * count}d")]
        return ", ".join(f"{x} {y}" for x, y in zip(numbers[::2], numbers[1::2], strict=True))

    def _count(self) -> int:
        (count,) = self._read("I")
        return int(count)

    def _read(self, layout: str) -> tuple[Any, ...]:
        packed = struct.Struct(self._order + layout)
        values = packed.unpack_from(self._data, self.offset)
        self.offset += packed.size
        return values


def _parts(parts: list[str]) -> str:
    return f"({', '.join(parts)})" if parts else "EMPTY"


def _number(number: float) -> str:
    """Write the shortest digits that are read as the same number, never with an exponent."""
    return format(Decimal(repr(number)), "f").removesuffix(".0")

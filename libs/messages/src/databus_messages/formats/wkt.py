"""Geometries as well-known text, laid out as JTS does: `POLYGON ((0 0, 1 0, 1 1, 0 0))`."""

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
_SRID = 4


def well_known_text(value: bytes) -> str:
    """Read a geometry's value text, which is SRID and WKB; the SRID is dropped. Raises ValueError."""
    reader = _Reader(value)
    try:
        text = reader.geometry(named=True)
    except (struct.error, KeyError, RecursionError):
        text = ""
    if not text or reader.offset != len(value):
        raise ValueError("no geometry that is known")
    return text


class _Reader:
    """Reads WKB (OGC 06-103r4, section 8): byte order, type, then coordinates or a number of parts."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order = "<"
        self.offset = _SRID

    def geometry(self, *, named: bool) -> str:
        """Read a geometry; the parts of MULTIPOINT, MULTILINESTRING and MULTIPOLYGON are written without a name."""
        self._order = "<" if self._read("B")[0] else ">"
        kind = self._count()
        name = _NAMES[kind]
        if kind == _POINT:
            body = f"({self._coordinates(1)})"
        elif kind == _LINESTRING:
            body = self._line()
        elif kind == _POLYGON:
            body = _listed([self._line() for _ in range(self._count())])
        else:
            body = _listed([self.geometry(named=kind == _COLLECTION) for _ in range(self._count())])
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
        found = packed.unpack_from(self._data, self.offset)
        self.offset += packed.size
        return found


def _listed(parts: list[str]) -> str:
    return f"({', '.join(parts)})" if parts else "EMPTY"


def _number(number: float) -> str:
    """Write the shortest digits that read back to the same, never with an exponent."""
    return format(Decimal(repr(number)), "f").removesuffix(".0")

"""Geometries become well-known text in the layout of JTS, Java's geometry library."""

import struct

import pytest

from databus_messages.formats.wkt import well_known_text


def wkb(kind: int, body: bytes) -> bytes:
    return struct.pack("<BI", 1, kind) + body


def line(*numbers: float) -> bytes:
    return struct.pack(f"<I{len(numbers)}d", len(numbers) // 2, *numbers)


def counted(*parts: bytes) -> bytes:
    return struct.pack("<I", len(parts)) + b"".join(parts)


POINT = wkb(1, struct.pack("<2d", 1, -2.5))
RING = line(0, 0, 1, 0, 1, 1, 0, 0)
LINE = wkb(2, line(0, 0, 1, 2))
POLYGON = wkb(3, counted(RING, RING))


@pytest.mark.parametrize(
    ("geometry", "text"),
    [
        (POINT, "POINT (1 -2.5)"),
        (wkb(1, struct.pack("<2d", 1e20, 1e-7)), "POINT (100000000000000000000 0.0000001)"),
        (struct.pack(">BI2d", 0, 1, 1, 2), "POINT (1 2)"),
        (LINE, "LINESTRING (0 0, 1 2)"),
        (POLYGON, "POLYGON ((0 0, 1 0, 1 1, 0 0), (0 0, 1 0, 1 1, 0 0))"),
        (wkb(4, counted(POINT, POINT)), "MULTIPOINT ((1 -2.5), (1 -2.5))"),
        (wkb(5, counted(LINE, LINE)), "MULTILINESTRING ((0 0, 1 2), (0 0, 1 2))"),
        (wkb(6, counted(wkb(3, counted(RING)))), "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))"),
        (
            wkb(7, counted(POINT, wkb(7, counted(LINE)))),
            "GEOMETRYCOLLECTION (POINT (1 -2.5), GEOMETRYCOLLECTION (LINESTRING (0 0, 1 2)))",
        ),
        (wkb(7, counted()), "GEOMETRYCOLLECTION EMPTY"),
    ],
)
def test_every_geometry_type_has_its_text(geometry: bytes, text: str) -> None:
    assert well_known_text(struct.pack("<I", 4326) + geometry) == text


@pytest.mark.parametrize("broken", [b"", POINT[:-1], POINT + b"\0", wkb(8, b""), wkb(7, counted())[:-1] + b"\x7f"])
def test_a_malformed_geometry_is_rejected(broken: bytes) -> None:
    with pytest.raises(ValueError, match="not a geometry"):
        well_known_text(b"\0\0\0\0" + broken)


def test_too_deeply_nested_collections_are_rejected() -> None:
    deep = struct.pack("<BII", 1, 7, 1) * 100_000 + POINT
    with pytest.raises(ValueError, match="not a geometry"):
        well_known_text(b"\0\0\0\0" + deep)

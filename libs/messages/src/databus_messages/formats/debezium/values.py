"""Converts canonical text (docs/reference/values.md) to Connect's values where no built-in function does it."""

import struct as binary
from typing import Any

import msgspec

from databus_binlog import float_text


def unscaled(text: bytes) -> bytes:
    """Convert a decimal to its unscaled value as Java's BigInteger writes it: shortest big-endian two's complement."""
    number = int(text.replace(b".", b""))
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def zero_padded_int(text: bytes) -> int:
    """Convert an integer that may have leading zeros.

    `JsonCodec` copies the text of a column whose converter is `int`, but JSON permits no leading zeros.
    """
    return int(text)


def compact_json(text: bytes) -> str:
    """Remove the white space between JSON tokens."""
    try:
        return msgspec.json.format(text, indent=-1).decode()
    except RecursionError as error:
        raise ValueError("JSON nested deeper than any server allows") from error


def floats(text: bytes) -> list[float]:
    """Convert a VECTOR. Floats are read from their shortest text: their exact values as doubles have more digits."""
    return [float(float_text(number, single=True)) for (number,) in _unpack("<f", text)]


def geometry(text: bytes) -> dict[str, Any]:
    """Convert a geometry (SRID and WKB); SRID 0 becomes null."""
    return {"wkb": text[4:], "srid": int.from_bytes(text[:4], "little") or None}


def point(text: bytes) -> dict[str, Any]:
    """Convert a POINT: its coordinates, WKB and SRID."""
    ((x, y),) = _unpack("<dd", text[9:])
    return {"x": x, "y": y, **geometry(text)}


def _unpack(layout: str, value: bytes) -> list[tuple[float, ...]]:
    try:
        return list(binary.iter_unpack(layout, value))
    except binary.error as error:
        raise ValueError("truncated value") from error

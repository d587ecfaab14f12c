"""Packed rows as JSON arrays of base64, compiled: no Python object is made of a value."""

import msgspec

Packed = bytes | bytearray | memoryview | msgspec.Raw

def json_base64(rows: Packed) -> bytes:
    """Make JSON of `Rows.rows`: an array for each row image, of a base64 string for each cell, null for NULL.

    Raises CorruptEvent for what is no msgpack array of arrays of `bin` and nil; an absent column is none of them.
    """

def count_rows(rows: Packed) -> int:
    """Count the row images in `Rows.rows`. Raises CorruptEvent for what is no msgpack array."""

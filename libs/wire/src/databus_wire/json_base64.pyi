"""Packed rows as JSON arrays of base64, without a Python object per value."""

from typing_extensions import Buffer

def json_base64(rows: Buffer) -> bytes:
    """Return packed rows (`Rows.rows` of databus_binlog) as a JSON array.

    Each row image is an array of base64 strings, with null for NULL, and false for a column that is absent from the
    image. Raises MalformedRows for anything except a msgpack array of arrays of `bin`, nil and false.
    """

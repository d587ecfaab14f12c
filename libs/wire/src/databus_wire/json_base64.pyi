"""Packed rows as JSON arrays of base64: no Python object is made of a value."""

from typing_extensions import Buffer

def json_base64(rows: Buffer) -> bytes:
    """Return packed rows (`Rows.rows` of databus_binlog) as a JSON array.

    It has an array for each row image, of a base64 string for each value, and null for NULL. Raises MalformedRows for
    anything but a msgpack array of arrays of `bin` and nil, so also for absent columns.
    """

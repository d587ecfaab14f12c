"""What a SELECT returns: packed rows, and how values are converted on the way."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Conversion(IntEnum):
    """How the text of a column's values, as the server prints them, becomes the decoder's text."""

    #: it is the same text
    NONE = 0
    #: the text of a FLOAT that was cast to DOUBLE, to the shortest text that reads back to the same FLOAT
    FLOAT = 1
    #: the text of a DOUBLE, to the shortest text that reads back to the same bits
    DOUBLE = 2
    #: MariaDB's YEAR(2), to four digits
    YEAR2 = 3


class RowBatch(msgspec.Struct, frozen=True, gc=False):
    """Consecutive rows of a result set."""

    #: msgpack: an array with an array for each row, of `bin` and, for NULL, nil
    rows: bytes
    #: number of rows, at least 1
    count: int
    #: bytes of cell data, as the server sent them
    size: int

"""Values as Maxwell's JSON has them.

Where Maxwell's own are wrong these are right: TIME below zero or above 24 hours, YEAR 0000, labels with quotes. An ENUM
that refused its value is "". What Maxwell does not know: MariaDB's JSON is the text it is to the server, UUID and INET
are what the server prints, VECTOR is base64.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import msgspec

from databus.events import Column, Table
from databus.formats import columns
from databus.formats.wkt import well_known_text
from databus_wire.json_rows import BASE64, PLAIN, RAW, TEXT, RowWriter

_Convert: TypeAlias = int | Callable[[bytes], bytes | None]

encode = msgspec.json.Encoder().encode

_DATES = columns.TEMPORAL - {"time"}


def row_writer(table: Table, *, null_zerodates: bool) -> RowWriter:
    """Make the writer of a table's rows. It raises ValueError or LookupError for a value that is none."""
    names = [column.name for column in table.columns]
    return RowWriter(names, [_convert(column, null_zerodates) for column in table.columns])


def _convert(column: Column, null_zerodates: bool) -> _Convert:
    if column.type in columns.LABELLED:
        return columns.labelled(column, encode, encode)
    if column.type in _DATES and null_zerodates:
        return _date_or_null
    return _CONVERTS.get(column.type, BASE64)


def _date_or_null(text: bytes) -> bytes | None:
    return None if text.startswith(b"0000-00-00") else b'"%b"' % text


def _year(text: bytes) -> bytes:
    return b"0" if text == b"0000" else text


def _geometry(value: bytes) -> bytes:
    return encode(well_known_text(value))


def _packed(printed: Callable[[bytes], str], value: bytes) -> bytes:
    return encode(printed(value))


_CONVERTS: Mapping[str, _Convert] = {
    **dict.fromkeys(columns.INTEGERS | columns.FLOATS | {"decimal", "bit", "json"}, RAW),
    **dict.fromkeys(columns.TEXT, TEXT),
    **dict.fromkeys(columns.TEMPORAL, PLAIN),
    **dict.fromkeys(columns.SPATIAL, _geometry),
    **{kind: partial(_packed, printed) for kind, printed in columns.PACKED.items()},
    "year": _year,
}

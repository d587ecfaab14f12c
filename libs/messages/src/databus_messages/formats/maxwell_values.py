"""Value encoding of Maxwell's JSON.

Some values that Maxwell distorts are exact here: a TIME that is negative or above 24 hours, YEAR 0000, and labels with
quotes. An invalid ENUM value (index 0) is "". Maxwell does not know some types: here, MariaDB's JSON is a string,
because it is a LONGTEXT; UUID and INET types are the text that the server prints; VECTOR is base64.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import msgspec

from databus_core.events import Column, Table
from databus_messages.formats import columns
from databus_messages.formats.wkt import well_known_text
from databus_wire.json_rows import BASE64, PLAIN, RAW, TEXT, RowWriter

_Converter: TypeAlias = int | Callable[[bytes], bytes | None]

encode = msgspec.json.Encoder().encode

_DATES = columns.TEMPORAL - {"time"}


def row_writer(table: Table, *, null_zerodates: bool) -> RowWriter:
    """Return the writer of a table's rows. It raises ValueError or LookupError for an invalid value."""
    names = [column.name for column in table.columns]
    return RowWriter(names, [_converter(column, null_zerodates) for column in table.columns])


def _converter(column: Column, null_zerodates: bool) -> _Converter:
    if column.type in columns.LABELLED:
        return columns.label_encoder(column, encode, encode)
    if column.type in _DATES and null_zerodates:
        return _date_or_null
    return _CONVERTERS.get(column.type, BASE64)


def _date_or_null(text: bytes) -> bytes | None:
    return None if text.startswith(b"0000-00-00") else b'"%b"' % text


def _year(text: bytes) -> bytes:
    return b"0" if text == b"0000" else text


def _geometry(value: bytes) -> bytes:
    return encode(well_known_text(value))


def _printed(print_value: Callable[[bytes], str], value: bytes) -> bytes:
    return encode(print_value(value))


_CONVERTERS: Mapping[str, _Converter] = {
    **dict.fromkeys(columns.INTEGERS | columns.FLOATS | {"decimal", "bit", "json"}, RAW),
    **dict.fromkeys(columns.TEXT, TEXT),
    **dict.fromkeys(columns.TEMPORAL, PLAIN),
    **dict.fromkeys(columns.SPATIAL, _geometry),
    **{kind: partial(_printed, print_value) for kind, print_value in columns.UUID_AND_INET.items()},
    "year": _year,
}

"""Converts values of mysql-replication to the decoder's text, and refuses those whose text can't be known.

Some of the library's objects lack information, others are wrong; the functions below refuse both. Both were found by
comparing the objects of version 1.0.17 with the text that MariaDB 10.11 and MySQL 9.7 print.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, TypeAlias

from pymysqlreplication.constants import NONE_SOURCE
from pymysqlreplication.row_event import RowsEvent

from databus_binlog import charsets
from databus_binlog.charset_tables import MULTI_BYTE, SINGLE_BYTE
from databus_binlog.errors import MissingMetadata, UnsupportedColumn
from databus_binlog.events import ABSENT, Value
from databus_binlog.number_text import float_text
from databus_binlog.table_map import ColumnMap, FieldType, TableMap

Text: TypeAlias = Callable[[Any], bytes]  #: converts a value of one column to its text

_T = FieldType
_SECOND = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1)  # without a time zone, like the library's values


class Refused(ValueError):
    """The column's value can't be derived from what the library returns."""


class ImageBuilder:
    """Makes row images of a table's rows. `columns` are the table's columns as the library describes them."""

    def __init__(self, table: TableMap, columns: Sequence[Any]) -> None:
        self._name = table.full_name
        self._columns = table.columns
        visible = columns[: len(columns) - table.hidden]
        if not table.has_names or [column.name for column in visible] != [column.name for column in table.columns]:
            raise MissingMetadata(
                f"mysql-replication does not know the columns of {self._name}:"
                " binlog_row_metadata must be FULL now, and must have been FULL when the rows were written"
            )
        self._texts = [
            self._text(column, library_column) for column, library_column in zip(table.columns, visible, strict=True)
        ]

    def _text(self, column: ColumnMap, library_column: Any) -> Text:
        if bool(column.unsigned) != library_column.unsigned:
            raise _refusal(self._name, column, "its sign")
        try:
            return _TEXTS[_T(column.type)](column, library_column)
        except Refused as error:
            raise _refusal(self._name, column, error) from error

    def image(self, values: Mapping[str, Any], none_sources: Mapping[str, str], present: bytes) -> list[Value]:
        """Return the values of all columns; `present` is the bitmap of the columns that the image contains."""
        image: list[Value] = []
        for i, (column, text) in enumerate(zip(self._columns, self._texts, strict=True)):
            value = values[column.name]
            try:
                if not present[i >> 3] >> (i & 7) & 1:
                    image.append(ABSENT)
                elif value is None:
                    image.append(_none(column, none_sources[column.name]))
                else:
                    image.append(text(value))
            except Refused as error:
                raise _refusal(self._name, column, error) from error
        return image


def require_known_types(table: TableMap) -> None:
    """Raise UnsupportedColumn for a type that the library can't read: it may misread the rest of the table map, too."""
    for column in table.columns:
        if column.type not in _TEXTS:
            raise _refusal(table.full_name, column, f"the type {_T(column.type).name}")


def _refusal(table: str, column: ColumnMap, what: object) -> UnsupportedColumn:
    advice = "choose the engine native, or exclude the table"
    return UnsupportedColumn(f"column {column.name} of {table}: mysql-replication can't read {what}; {advice}")


def _none(column: ColumnMap, source: str) -> bytes | None:
    """Return the text that the library's None stands for, None if it stands for NULL.

    Raises Refused if it may stand for several values.
    """
    if source == NONE_SOURCE.EMPTY_SET:
        return b"0"
    if source != NONE_SOURCE.NULL:
        raise Refused("a date that the calendar does not have, like 0000-00-00")
    if column.type == _T.JSON:
        if column.nullable:
            raise Refused("a value that is either NULL or JSON's null")
        return b"null"
    return None


# --- numbers ----------------------------------------------------------------------------------------------------------


def _digits(value: int) -> bytes:
    return b"%d" % value


def _decimal(value: Decimal) -> bytes:
    return format(value, "f").encode()


def _year(value: int) -> bytes:
    return b"0000" if value == 1900 else _digits(value)


# --- dates and times --------------------------------------------------------------------------------------------------


def _time(digits: int, value: timedelta) -> bytes:
    sign = "-" if value < timedelta(0) else ""
    if sign and value.microseconds:  # -00:00:00.1 is read as -00:00:00.9
        raise Refused("a negative time with a fraction")
    minutes, seconds = divmod(abs(value) // _SECOND, 60)
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}{_fraction(value.microseconds, digits)}".encode()


def _datetime(digits: int, value: datetime) -> bytes:
    return f"{value.replace(microsecond=0).isoformat(' ')}{_fraction(value.microsecond, digits)}".encode()


def _timestamp(digits: int, value: datetime) -> bytes:
    if value < _EPOCH:  # the library takes the seconds for a signed number
        raise Refused("a time after 2038")
    if value < _EPOCH + _SECOND:  # 0 seconds stand for the zero timestamp
        return b"0000-00-00 00:00:00" + _fraction(0, digits).encode()
    return _datetime(digits, value)


def _fraction(microsecond: int, digits: int) -> str:
    return f".{microsecond:06}"[: digits + 1] if digits else ""


def _with_digits(text: Callable[[int, Any], bytes]) -> Callable[[ColumnMap, Any], Text]:
    return lambda column, _: lambda value: text(column.metadata or 0, value)


# --- text -------------------------------------------------------------------------------------------------------------


def _labelled(column: ColumnMap, library_column: Any) -> Text:
    """Return a function that converts the label of an ENUM, or the labels of a SET, to the stored number.

    Raises Refused if the labels are ambiguous, or if the library has read them differently: it reads labels that are
    not UTF-8 as empty, and long labels wrongly.
    """
    is_set = column.type == _T.SET
    labels = list(column.values or ())
    numbers = {label: 1 << i if is_set else i + 1 for i, label in enumerate(labels)}
    library_labels = library_column.set_values if is_set else (library_column.enum_values or [])[1:]
    if len(numbers) != len(labels) or labels != library_labels:
        raise Refused("its labels")
    if is_set:
        return lambda value: _digits(sum(numbers[label] for label in value))
    if "" in numbers:
        raise Refused("the empty label, which the library returns for invalid values, too")
    numbers[""] = 0  # an invalid value
    return lambda value: _digits(numbers[value])


def _string(column: ColumnMap, library_column: Any) -> Text:
    """Return a function that converts text, which the library has decoded with Python's codec, or binary strings.

    Raises Refused if the codec may differ from the server.
    """
    codec = RowsEvent.charset_to_encoding(library_column.character_set_name)
    if column.charset == codec == "binary":
        width = column.metadata or 0
        width = width if column.type == _T.STRING else 0
        return lambda value: (value or b"").ljust(width, b"\0")  # the library returns bytes, but "" for empty bytes
    if not _is_exact(codec, column.charset or ""):
        raise Refused(f"text in {column.charset}")
    return str.encode


def reads_text_in(charset: str) -> bool:
    """Whether the library decodes text in a character set exactly."""
    return _is_exact(RowsEvent.charset_to_encoding(charset), charset)


def _is_exact(codec: str | None, charset: str) -> bool:
    exact = _exact_codec(charset)
    return bool(exact and codec) and _codec_name(codec) == _codec_name(exact)


def _codec_name(alias: str | None) -> str:
    try:
        return codecs.lookup(alias or "").name
    except LookupError:
        return ""


def _exact_codec(charset: str) -> str:
    """Return Python's codec that decodes as the server does, or "".

    The codec may lack codes of the server: the library then raises an error, so it never returns a wrong text.
    """
    if charset in charsets.UTF8:
        return "utf-8"
    if charset in MULTI_BYTE:
        facts = MULTI_BYTE[charset]
        return "" if facts.differing or facts.foreign else facts.codec
    codec, differing = SINGLE_BYTE.get(charset, ("", {}))
    return "" if any(bytes([byte]).decode(codec, "ignore") for byte in differing) else codec


# --- JSON -------------------------------------------------------------------------------------------------------------


def _json(value: object) -> str:
    """Print MySQL's JSON as the server does. Refuses SQL types except DECIMAL: the library does not return the type."""
    if type(value) not in _JSON:
        raise Refused(f"the type of a value in its JSON, here a {type(value).__name__}")
    return _JSON[type(value)](value)


def _json_double(value: float) -> str:
    text = float_text(value).decode()
    return text if "." in text or "e" in text else f"{text}.0"


def _json_string(value: bytes) -> str:
    return json.dumps(value.decode(), ensure_ascii=False)


_JSON: dict[type, Callable[[Any], str]] = {
    NoneType: lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _json_double,
    Decimal: lambda value: format(value, "f"),
    bytes: _json_string,
    list: lambda value: f"[{', '.join(map(_json, value))}]",
    dict: lambda value: f"{{{', '.join(f'{_json(key)}: {_json(item)}' for key, item in value.items())}}}",
}


def _always(text: Text) -> Callable[[ColumnMap, Any], Text]:
    return lambda _, __: text


#: How to print a column of each type. VECTOR, compressed columns and the temporal types before MySQL 5.6 are
#: missing, because the library does not read them correctly.
_TEXTS: dict[int, Callable[[ColumnMap, Any], Text]] = {
    **dict.fromkeys((_T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG), _always(_digits)),
    _T.FLOAT: _always(lambda value: float_text(value, True)),
    _T.DOUBLE: _always(float_text),
    _T.NEWDECIMAL: _always(_decimal),
    _T.BIT: _always(lambda value: _digits(int(value, 2))),
    _T.YEAR: _always(_year),
    _T.DATE: _always(lambda value: value.isoformat().encode()),
    _T.TIME2: _with_digits(_time),
    _T.DATETIME2: _with_digits(_datetime),
    _T.TIMESTAMP2: _with_digits(_timestamp),
    **dict.fromkeys((_T.ENUM, _T.SET), _labelled),
    **dict.fromkeys((_T.VARCHAR, _T.STRING, _T.BLOB), _string),
    _T.GEOMETRY: _always(bytes),
    _T.JSON: _always(lambda value: _json(value).encode()),
}

"""What version 1.0.17 of the library mysql-replication misreads, and the errors that the engine of that name raises."""

import re
from typing import NamedTuple

from common.column_types import Column


class MisreadValue(NamedTuple):
    """A value that the library reads wrongly, or cannot distinguish from another value. All fields are patterns."""

    column: str  #: the column's definition
    text: str  #: the value as the server prints it; NULL is "NULL"
    message: str  #: the error message


class MisreadType(NamedTuple):
    """A column type of which the library reads all values wrongly. Both fields are patterns."""

    column: str  #: the column's definition
    message: str  #: the error message


VALUES = [
    # The library reads -00:00:00.1 as -00:00:00.9.
    MisreadValue(r"TIME\(\d\)", r"-.*\.\d*[1-9]\d*", "a negative time with a fraction"),
    # It returns None.
    MisreadValue(r"DATE(TIME\(\d\))?", r".*-00\b.*", "a date that the calendar does not have"),
    # Its codec can't decode these bytes.
    MisreadValue(r".* latin1", ".*[\x81\x8d\x8f\x90\x9d].*", "UnicodeDecodeError"),
    # It returns None for NULL and for JSON's null.
    MisreadValue("JSON", "NULL|null", "either NULL or JSON's null"),
    # It loses the SQL type of a value inside of JSON, or fails.
    MisreadValue("JSON", r'.*"(-?\d+:\d\d:|\d{4}-\d\d-|base64:).*', "the type of a value in its JSON|ValueError"),
]
TYPES = [
    # The library decodes labels as UTF-8, and returns empty ones where that fails.
    MisreadType(r"ENUM\(.* latin1", "its labels"),
    # Python's codec decodes some codes differently than the server.
    MisreadType(r".*SET (big5|cp932|eucjpms|euckr|gb18030|greek|hebrew|sjis|ujis)", "text in"),
    # Python has no codec for the character set, or the library uses a codec of the wrong byte order.
    MisreadType(r".*SET (swe7|ucs2|utf16|utf16le|utf32)", "text in"),
    # The library does not know these types, so it misreads the table map.
    MisreadType(r"VECTOR\(\d\)", "the type VECTOR"),
    MisreadType(r".* COMPRESSED.*", "the type (BLOB|VARCHAR)_COMPRESSED"),
]


def is_misread_type(column: Column) -> bool:
    """Return whether the library misreads all values of a column."""
    return any(re.fullmatch(wrong.column, column.type) for wrong in TYPES)


def expected_refusal(column: Column, text: bytes | None) -> str | None:
    """Return the pattern of the message with which a value must be refused; None if it must be read."""
    for wrong in TYPES:
        if re.fullmatch(wrong.column, column.type):
            return wrong.message
    shown = "NULL" if text is None else text.decode("utf-8", "replace")
    for value in VALUES:
        if re.fullmatch(value.column, column.type) and re.fullmatch(value.text, shown, re.DOTALL):
            return value.message
    return None

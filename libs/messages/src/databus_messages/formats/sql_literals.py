r"""Values as SQL literals, in one of two dialects.

Both dialects write numbers unquoted, ENUM and SET as unquoted numbers, and BIT as `b'0101'`. Dates, times, text and
MariaDB's UUID and INET types are in single quotes. In text, a quote or a backslash has a backslash before it, and a
line feed is `\n`. The dialects differ in bytes and in other control characters: `mysqlbinlog`, like the tool of that
name, writes bytes as text in quotes, and unprintable characters as `\xNN`; `mysql` writes literals that MySQL can
execute (`x'00ff'`, `\r`, `\Z`).
"""

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from databus_core.events import Column
from databus_messages.formats import columns

Dialect = Literal["mysqlbinlog", "mysql"]
#: converts a value's canonical text (docs/reference/values.md) to a literal
LiteralEncoder: TypeAlias = Callable[[bytes], str]

_UNQUOTED = columns.INTEGERS | columns.FLOATS | {"decimal", "year", "enum", "set"}


def literal_encoder(column: Column, dialect: Dialect) -> LiteralEncoder:
    """Return the encoder of a column's values. It raises ValueError for invalid text, e.g. if it is not UTF-8."""
    if column.type in _UNQUOTED:
        return bytes.decode
    if column.type == "bit":
        width = next(iter(columns.type_arguments(column)), 1)
        return lambda value: f"b'{int(value):0{width}b}'"
    if column.type in columns.TEMPORAL:
        return lambda value: f"'{value.decode()}'"
    if print_value := columns.UUID_AND_INET.get(column.type):
        return lambda value: f"'{print_value(value)}'"
    is_mysqlbinlog = dialect == "mysqlbinlog"
    if column.type == "json" or column.type in columns.TEXT:
        return _mysqlbinlog_text if is_mysqlbinlog else _mysql_text
    return _mysqlbinlog_bytes if is_mysqlbinlog else (lambda value: f"x'{value.hex()}'")


_ESCAPES = {"'": r"\'", "\\": r"\\", "\n": r"\n"}
_MYSQL_ESCAPES = str.maketrans({**_ESCAPES, "\r": r"\r", "\t": r"\t", "\0": r"\0", "\b": r"\b", "\x1a": r"\Z"})


def _mysql_text(value: bytes) -> str:
    return "'" + value.decode().translate(_MYSQL_ESCAPES) + "'"


def _mysqlbinlog_text(value: bytes) -> str:
    return "'" + re.sub(r"['\\\x00-\x1f\x7f]", _escape, value.decode()) + "'"


def _mysqlbinlog_bytes(value: bytes) -> str:
    return "'" + re.sub(r"['\\\x00-\x1f\x7f-\xff]", _escape, value.decode("latin-1")) + "'"


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"\\x{ord(found[0]):02x}"

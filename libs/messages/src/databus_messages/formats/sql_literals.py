r"""Values as SQL literals, in one of two dialects.

Both write numbers bare, ENUM and SET as numbers, BIT as `b'0101'`, dates and times in quotes, and text in single quotes
with a backslash before a quote or a backslash and with `\n`. `mysqlbinlog` writes bytes as text, and all in it that
cannot be printed as `\xNN`, like that tool; `mysql` writes what MySQL reads: `x'00ff'`, `\r`, `\Z`.
"""

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from databus.events import Column
from databus_messages.formats import columns

Dialect = Literal["mysqlbinlog", "mysql"]
#: writes a value's text
LiteralOf: TypeAlias = Callable[[bytes], str]

_BARE = columns.INTEGERS | columns.FLOATS | {"decimal", "year", "enum", "set"}


def literal_of(column: Column, dialect: Dialect) -> LiteralOf:
    """Choose how values of a column are written. What it gives raises ValueError for text that is not UTF-8."""
    if column.type in _BARE:
        return bytes.decode
    if column.type == "bit":
        width = next(iter(columns.arguments(column)), 1)
        return lambda value: f"b'{int(value):0{width}b}'"
    if column.type in columns.TEMPORAL:
        return lambda value: f"'{value.decode()}'"
    if printed := columns.PACKED.get(column.type):
        return lambda value: f"'{printed(value)}'"
    as_tool = dialect == "mysqlbinlog"
    if column.type == "json" or column.type in columns.TEXT:
        return _text_of_tool if as_tool else _text
    return _bytes_of_tool if as_tool else (lambda value: f"x'{value.hex()}'")


_QUOTED = {"'": r"\'", "\\": r"\\", "\n": r"\n"}
_FOR_MYSQL = str.maketrans({**_QUOTED, "\r": r"\r", "\t": r"\t", "\0": r"\0", "\b": r"\b", "\x1a": r"\Z"})


def _text(value: bytes) -> str:
    return "'" + value.decode().translate(_FOR_MYSQL) + "'"


def _text_of_tool(value: bytes) -> str:
    return "'" + re.sub(r"['\\\x00-\x1f\x7f]", _escape, value.decode()) + "'"


def _bytes_of_tool(value: bytes) -> str:
    return "'" + re.sub(r"['\\\x00-\x1f\x7f-\xff]", _escape, value.decode("latin-1")) + "'"


def _escape(found: re.Match[str]) -> str:
    return _QUOTED.get(found[0]) or f"\\x{ord(found[0]):02x}"

"""Rows as JSON objects: what message formats of one object a row spend most of their time with."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias, final

from databus_binlog.json_base64 import Packed

_Row: TypeAlias = list[bytes | None]
_Convert: TypeAlias = Callable[[bytes], bytes | str | None]

#: the value's text as it is: it is JSON
RAW: Final[int]
#: the text in quotes: it has nothing to escape
PLAIN: Final[int]
#: a string of UTF-8 text
TEXT: Final[int]
#: a string of bytes that are characters U+0000…U+00FF
LATIN_1: Final[int]
#: a string of bytes in base64
BASE64: Final[int]
#: in base64, the unscaled value of a decimal of up to 18 digits: two's complement, big endian, as short as it can be
DECIMAL: Final[int]
#: the days since 1970 of a DATE
DAYS: Final[int]
#: the milliseconds since 1970 of a DATETIME, rounded down
MILLISECONDS: Final[int]
#: the microseconds since 1970 of a DATETIME
MICROSECONDS: Final[int]
#: the microseconds of a TIME
TIME: Final[int]
#: a TIMESTAMP, which is in UTC, with T and Z
ZONED: Final[int]
#: a string of the JSON that the text is, without white space between its tokens
JSON: Final[int]

@final
class RowWriter:
    """Writes the rows of a table as JSON objects.

    For each column it is told the name and how a value's text becomes JSON: one of the constants, or what makes
    JSON (bytes) or a string of it; None is null. Of a pair, the constant is for usual texts, and the other for all
    else. Usual are decimals of one to seven digits before the point that are not under 0.1. Constants from DECIMAL
    on are always of a pair, and usual is what they name: dates and times that exist, from the year 1 on, and JSON
    that is valid, without escapes by number and of at most 64 levels. What is written may leave out nulls. Of packed
    rows (`Rows.rows`) no object is made but of values that are only for usual texts or are converted. All raise
    ValueError for text that is not UTF-8 and rows of another length, CorruptEvent for packed rows that are none, and
    what a conversion raises, which must neither change the rows nor use the writer.
    """

    def __init__(self, names: Iterable[str], converts: Iterable[int | _Convert | tuple[int, _Convert]]) -> None: ...
    def row(self, row: _Row, nulls: bool = True, head: bytes = b"", tail: bytes = b"") -> bytes:
        """Write a row, between what stands before and behind it."""

    def some(
        self, rows: Sequence[_Row] | Packed, places: tuple[int, ...], head: bytes = b"", tail: bytes = b""
    ) -> list[bytes]:
        """Write some columns of each row, between what stands before and behind them."""

    def numbered(
        self,
        rows: Sequence[_Row] | Packed,
        numbers: Sequence[int],
        head: bytes,
        joint: bytes | None,
        middle: bytes,
        tails: bytes | Sequence[bytes],
    ) -> list[bytes]:
        """Write for each number, of at most 63 bits: head, row, middle, number and tail, which each may have its own.

        With a joint it is two rows each, with the joint between them.
        """

    def array(self, rows: Sequence[_Row] | Packed, others: Sequence[_Row] | None = None) -> bytes:
        """Write rows as an array, of each only what is not equal in the other of its place, if there is one."""

    def changed(self, before: _Row, after: _Row, nulls: bool = True) -> bytes | None:
        """Write those values before an update that it changed; None if there are none."""

    def values(self, places: tuple[int, ...], row: _Row) -> list[bytes]:
        """Write some of a row's values."""

"""Rows as JSON objects. Formats with one object per row spend most of their time on writing them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias, final

from typing_extensions import Buffer

#: values in table order, None for NULL
_Row: TypeAlias = list[bytes | None]
_Rows: TypeAlias = Sequence[_Row] | Buffer
_Convert: TypeAlias = Callable[[bytes], bytes | str | None]

# The kinds of columns: how the text of a value becomes JSON.

#: the text as it is: it is JSON
RAW: Final[int]
#: a string of the text, which needs no escapes
PLAIN: Final[int]
#: a string of UTF-8 text
TEXT: Final[int]
#: a string whose characters U+0000…U+00FF are the bytes
LATIN_1: Final[int]
#: a string of the bytes in base64
BASE64: Final[int]
#: the base64 of a decimal of up to 18 digits as Kafka Connect has it: the unscaled value as the shortest big-endian
#: two's complement
DECIMAL: Final[int]
#: a DATE as days since 1970
DAYS: Final[int]
#: a DATETIME as milliseconds since 1970, rounded down
MILLISECONDS: Final[int]
#: a DATETIME as microseconds since 1970
MICROSECONDS: Final[int]
#: a TIME as microseconds
TIME: Final[int]
#: a TIMESTAMP, which is in UTC, in ISO 8601: with T and Z
ZONED: Final[int]
#: JSON as a string, without white space between its tokens
JSON: Final[int]

@final
class RowWriter:
    """Writes the rows of one table as JSON objects, with a member for each column.

    names: the names of the members.
    converts: for each column a kind, or a function that returns JSON as bytes, a string as str, or None for null; or
        both as a pair. In a pair the kind is for texts on its fast path, and the function for all others. The fast path
        of RAW and PLAIN has decimals with one to seven digits before the point that are 0.1 or more, or -0.1 or less.
        DECIMAL and the kinds after it are always in a pair. Their fast paths have the texts that they are named for:
        existing dates and times from year 1 on, and valid JSON of at most 64 levels without numeric escapes.

    Rows are lists, or PackedRows, or packed rows as bytes. For the values of packed rows no objects are made unless
    a function or a fast path needs them. All methods raise ValueError for text that is not UTF-8 and for rows with a
    wrong number of values, MalformedRows for malformed packed rows, and what a function raises. Functions must
    neither change the rows nor use the writer.
    """

    def __init__(self, names: Iterable[str], converts: Iterable[int | _Convert | tuple[int, _Convert]]) -> None: ...
    def row(self, row: _Row, nulls: bool = True, head: bytes = b"", tail: bytes = b"") -> bytes:
        """Return head, the row and tail; without members that are NULL if `nulls` is false."""

    def some(self, rows: _Rows, columns: tuple[int, ...], head: bytes = b"", tail: bytes = b"") -> list[bytes]:
        """Return for each row head, an object of these columns, and tail."""

    def numbered(
        self,
        rows: _Rows,
        numbers: Sequence[int],
        head: bytes,
        between: bytes | None,
        middle: bytes,
        tails: bytes | Sequence[bytes],
    ) -> list[bytes]:
        """Return for each number (an int64) head, its row, middle, the number and its tail, or the tail of all.

        If `between` is not None, each number has two rows, with `between` between them.
        """

    def array(self, rows: _Rows, others: Sequence[_Row] | None = None) -> bytes:
        """Return rows as an array. With `others`, a row has only the members that differ from the other row's."""

    def changed(self, before: _Row, after: _Row, nulls: bool = True) -> bytes | None:
        """Return an object of the values before an update that it changed; None if it changed none."""

    def values(self, columns: tuple[int, ...], row: _Row) -> list[bytes]:
        """Return the values of these columns, each as JSON."""

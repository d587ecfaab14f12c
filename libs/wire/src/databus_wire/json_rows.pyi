"""Writes rows as JSON objects: compiled, because formats with an object for each row spend most of their time on it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias, final

from typing_extensions import Buffer

#: values in table order, None for NULL
_Row: TypeAlias = list[bytes | None]
_Rows: TypeAlias = Sequence[_Row] | Buffer
_Convert: TypeAlias = Callable[[bytes], bytes | str | None]

# The kinds of columns: how the text of a value becomes JSON.

#: the text itself, which must be JSON
RAW: Final[int]
#: a string of the text, which must not need escapes
PLAIN: Final[int]
#: a string of UTF-8 text
TEXT: Final[int]
#: a string whose characters U+0000…U+00FF are the bytes
LATIN_1: Final[int]
#: a string of the bytes in base64
BASE64: Final[int]
#: a decimal of up to 18 digits as in Kafka Connect's JSON: the unscaled value, as the shortest big-endian two's
#: complement, in base64
DECIMAL: Final[int]
#: a DATE as days since 1970-01-01
DAYS: Final[int]
#: a DATETIME as milliseconds since 1970, rounded down
MILLISECONDS: Final[int]
#: a DATETIME as microseconds since 1970
MICROSECONDS: Final[int]
#: a TIME as microseconds
TIME: Final[int]
#: a TIMESTAMP in UTC as a string in ISO 8601, with T and Z
ZONED: Final[int]
#: a JSON document as a string, without white space between its tokens
JSON: Final[int]

@final
class RowWriter:
    """Writes the rows of one table as JSON objects, with a member for each column.

    names: the names of the members.
    converts: for each column, how its values become JSON: a kind, a function, or a pair of a kind and a function. The
        function returns JSON as bytes, a string as str, or None for null. In a pair, the kind is for texts on its fast
        path, the function for all other texts. The kinds from DECIMAL to JSON are permitted only in a pair.

    The fast path of RAW and PLAIN is for decimals that have a point, at most seven digits before it, and an absolute
    value of at least 0.1. The fast path of the kinds for dates and times is for existing dates from year 1 on (ZONED:
    from year 1000 on), and for valid times. The fast path of JSON is for valid documents of at most 64 levels without
    numeric escapes.

    Rows are lists, PackedRows, or packed rows as bytes. Values of packed rows become Python objects only if a function
    or a fast path needs them. All methods raise ValueError for text that is not UTF-8 and for rows with a wrong number
    of values, MalformedRows for malformed packed rows, and any error that a function raises. Functions must neither
    change the rows nor use the writer.
    """

    def __init__(self, names: Iterable[str], converts: Iterable[int | _Convert | tuple[int, _Convert]]) -> None: ...
    def row(self, row: _Row, nulls: bool = True, head: bytes = b"", tail: bytes = b"") -> bytes:
        """Return `head`, the row as an object, and `tail`. If `nulls` is false, columns that are NULL are left out."""

    def some_columns(self, rows: _Rows, columns: tuple[int, ...], head: bytes = b"", tail: bytes = b"") -> list[bytes]:
        """Return for each row `head`, an object of these columns, and `tail`."""

    def numbered(
        self,
        rows: _Rows,
        numbers: Sequence[int],
        head: bytes,
        between: bytes | None,
        middle: bytes,
        tails: bytes | Sequence[bytes],
    ) -> list[bytes]:
        """Return for each number `head`, its row as an object, `middle`, the number itself, and a tail.

        If `between` is not None, each number has two rows, with `between` between them. `tails` has a tail for each
        number, or is the same tail for all. Numbers must fit 64 bits.
        """

    def array(self, rows: _Rows, others: Sequence[_Row] | None = None) -> bytes:
        """Return the rows as an array of objects.

        With `others`, an object has only the members that differ from the row with the same index in `others`.
        """

    def changed(self, before: _Row, after: _Row, nulls: bool = True) -> bytes | None:
        """Return an object of the values in `before` that differ from those in `after`; None if all are equal.

        If `nulls` is false, columns that are NULL in `before` are left out.
        """

    def values(self, columns: tuple[int, ...], row: _Row) -> list[bytes]:
        """Return the values of these columns, each as JSON."""

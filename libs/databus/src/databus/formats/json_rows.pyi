from collections.abc import Callable, Iterable
from typing import Final, final

from databus.events import Row

#: the value's text as it is: it is JSON
RAW: Final[int]
#: the text in quotes: it has nothing to escape
PLAIN: Final[int]
#: a string of UTF-8 text
TEXT: Final[int]
#: a string of bytes in base64
BASE64: Final[int]

@final
class RowWriter:
    """Writes the rows of a table as JSON objects.

    For each column it is told the name and how a value's text becomes JSON: one of the constants, or what makes the
    JSON of it; None is null. What is written may leave out nulls. All raise ValueError for text that is not UTF-8, and
    what a conversion raises.
    """

    def __init__(self, names: Iterable[str], converts: Iterable[int | Callable[[bytes], bytes | None]]) -> None: ...
    def row(self, row: Row, nulls: bool = True, head: bytes = b"", tail: bytes = b"") -> bytes:
        """Write a row, between what stands before and behind it."""

    def changed(self, before: Row, after: Row, nulls: bool = True) -> bytes | None:
        """Write those values before an update that it changed; None if there are none."""

    def values(self, places: tuple[int, ...], row: Row) -> list[bytes]:
        """Write some of a row's values."""

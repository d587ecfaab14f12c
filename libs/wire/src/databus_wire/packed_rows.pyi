"""Rows as the services exchange them: a msgpack array of arrays of `bin`, and nil for NULL."""

from collections.abc import Sequence
from typing import final, overload

from typing_extensions import Buffer

@final
class PackedRows(Sequence[list[bytes | None]]):
    """Row images, each a list of values in table order. The lists are made on first access; `len` makes none.

    Of a sequence it has the length, access by index and iteration.
    """

    #: the rows as msgpack
    packed: Buffer

    def __new__(cls, packed: Buffer) -> PackedRows:
        """Raises MalformedRows for anything except a msgpack array."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> list[bytes | None]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[bytes | None]]: ...
    def unpack(self) -> list[list[bytes | None]]:
        """Return the row images. Raises MalformedRows for values that are neither `bin` nor nil, so also if absent."""

"""Rows as the services exchange them: a msgpack array with an array for each row.

A value is `bin`, and NULL is nil. In the rows of a partial event (`databus_core.events.RowsEvent`), false is ABSENT.
"""

from collections.abc import Sequence
from typing import final, overload

from typing_extensions import Buffer

@final
class PackedRows(Sequence[list[bytes | None]]):
    """A sequence of row images: lists of values in table order. The lists are made on first access, not by `len`."""

    #: the rows as msgpack
    packed: Buffer

    def __new__(cls, packed: Buffer) -> PackedRows:
        """Read the number of rows. Raises MalformedRows if `packed` does not begin like a msgpack array."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> list[bytes | None]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[bytes | None]]: ...
    def unpack(self) -> list[list[bytes | None]]:
        """Return the row images, with False for ABSENT. Raises MalformedRows for the same bytes as `json_base64`."""

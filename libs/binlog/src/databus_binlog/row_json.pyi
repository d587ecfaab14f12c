"""Rows as JSON objects, compiled: of a message, strings are what takes the time."""

from collections.abc import Callable, Sequence

def objects(
    members: list[bytes],
    kinds: bytes,
    converters: list[Callable[[bytes], str] | None],
    rows: Sequence[list[bytes | None]],
    others: Sequence[list[bytes | None]] | None = None,
) -> list[bytes]:
    """Make the JSON object of each row; all values are strings, or null.

    members: what stands before each column's value, e.g. `"id":`. kinds, one a column: `t` for UTF-8, `l` for bytes
    that become U+0000…U+00FF, `c` for what the column's converter makes of the value, `f` for the same but for
    decimals of one to seven digits before the point that are not under 0.1, which stay as they are. others: leave out
    what is equal there, in the row of the same place.

    Raises ValueError for text that is not UTF-8, or a row of another length, and what converters raise.
    """

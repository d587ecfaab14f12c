"""Packed rows as columns in Arrow's layout, without a Python object per value."""

from typing import TypeAlias

#: the validity bitmap, the offsets of the values as int32, their bytes, and the number of NULLs
_Column: TypeAlias = tuple[bytes, bytes, bytes, int]

def columns(batches: list[bytes], width: int) -> tuple[int, list[_Column]]:
    """Return the number of rows, and the buffers of each of `width` columns of variable-size binary values.

    Raises MalformedRows for anything except packed rows of this width without absent values, or if a column has more
    than 2 GiB. The interpreter's lock is released meanwhile.
    """

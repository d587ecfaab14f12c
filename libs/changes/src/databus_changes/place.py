"""Places in the binlog of one host, and which of two comes first."""

from typing import TypeAlias

#: file and offset
Place: TypeAlias = tuple[str, int]


def reached(place: Place, end: Place) -> bool:
    """Return whether a place is at or after another one of the same host. Files are ordered by their numbers."""
    return _ordered(place) >= _ordered(end)


def _ordered(place: Place) -> tuple[int, int]:
    file, offset = place
    return int(file.rpartition(".")[2]), offset

"""Places in the binlog of one host, and which of two comes first."""

from typing import TypeAlias

from databus_binlog import Position

#: file and offset
Place: TypeAlias = tuple[str, int]


def reached(place: Place, end: Place) -> bool:
    """Return whether a place is at or after another one of the same host."""
    return Position("", *place).log_order >= Position("", *end).log_order

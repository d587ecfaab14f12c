"""Reads the integers and strings in the bodies of events."""

from __future__ import annotations

from collections.abc import Iterator


class Cursor:
    """Reads bytes from start to end. Raises IndexError if too few are left, KeyError for a malformed length."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def __bool__(self) -> bool:
        return self.at < len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        part = self._data[self.at : self.at + size]
        if len(part) != size:
            raise IndexError(f"{size} bytes wanted, {len(part)} left")
        self.at += size
        return part

    def uint(self, size: int) -> int:
        """Return a little-endian integer."""
        return int.from_bytes(self.take(size), "little")

    def lenenc(self) -> int:
        """Return a length-encoded integer."""
        first = self.uint(1)
        return first if first < 0xFB else self.uint({0xFC: 2, 0xFD: 3, 0xFE: 8}[first])

    def lenenc_bytes(self) -> bytes:
        """Return a length-encoded string, as bytes."""
        return self.take(self.lenenc())

    def rest(self) -> Iterator[int]:
        """Yield length-encoded integers until the end."""
        while self:
            yield self.lenenc()

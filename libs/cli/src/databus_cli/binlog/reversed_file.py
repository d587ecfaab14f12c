"""A temporary file of records that are read in reverse order, so that memory does not depend on their number."""

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile

#: limit in bytes for records in memory
_IN_MEMORY = 1 << 23
#: number of bytes that hold a record's length, after each record
_LENGTH = 4


class ReversedFile:
    """Records in a temporary file; in memory, as long as they are few."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - open as long as this object exists
        #: bytes of all records, with their lengths
        self.size = 0

    def append(self, record: bytes) -> None:
        """Append a record."""
        self.size += self._file.write(record + len(record).to_bytes(_LENGTH))

    def truncate(self, size: int) -> None:
        """Drop the records that were appended since the file had this size."""
        self._file.seek(size)
        self._file.truncate()
        self.size = size

    def __iter__(self) -> Iterator[bytes]:
        """Yield the records, the last one first."""
        end = self.size
        while end:
            self._file.seek(end - _LENGTH)
            length = int.from_bytes(self._file.read(_LENGTH))
            end -= _LENGTH + length
            self._file.seek(end)
            yield self._file.read(length)

    def close(self) -> None:
        """Release the file."""
        self._file.close()

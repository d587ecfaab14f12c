"""A file of a dump while it is written: counted and hashed."""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from databus_core import durable
from databus_dump_api.storage_errors import storage_errors


class PartFile:
    """A file that is written anew. All methods block, and raise StorageFull or StorageUnavailable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: number of bytes written so far
        self.bytes = 0
        self._hash = sha256()
        with storage_errors(path):
            self._file: BinaryIO = path.open("wb")

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._file.closed

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes written so far, in hexadecimal."""
        return self._hash.hexdigest()

    def write(self, content: bytes) -> None:
        """Append bytes."""
        self.bytes += len(content)
        with storage_errors(self.path, self.bytes):
            self._file.write(content)
        self._hash.update(content)

    def close(self) -> None:
        """Make the content durable, and close the file."""
        with storage_errors(self.path, self.bytes):
            durable.close(self._file)

    def abandon(self) -> None:
        """Close the file, and remove it."""
        with suppress(OSError):  # what is still in its buffer may not fit on the volume
            self._file.close()
        with suppress(OSError):
            self.path.unlink()

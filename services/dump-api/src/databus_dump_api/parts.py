"""Part files: the rows of one table as JSON lines, compressed with zstd, in files of bounded size."""

import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import BinaryIO

import zstandard

from databus import durable
from databus.events import Action, Row, Table
from databus.manifest import DumpFile
from databus_dump_api.store import storage_errors
from databus_messages.formats.databus import Encoder

#: file names are limited to 255 bytes; the rest is for the part number and the suffix
_LONGEST_STEM = 200


class PartWriter:
    """Writes a table's rows to part files of about `size` bytes before compression.

    All methods block, and raise StorageFull or StorageUnavailable. The files are durable once `close` has returned.
    """

    def __init__(self, folder: Path, table: Table, size: int, *, strict: bool = False) -> None:
        self._folder = folder
        self._table = table
        self._size = size
        self._strict = strict
        self._encoder = Encoder(strict=strict)
        self._part: _PartFile | None = None
        self._closed: list[DumpFile] = []

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows as one JSON line."""
        if self._part is None:
            name = f"{_stem(self._table)}.{len(self._closed) + 1:05d}.jsonl.zst"
            self._part = _PartFile(self._folder / name)
        self._part.write(self._encoder.rows_value(self._table, Action.INSERT, rows) + b"\n", len(rows))
        if self._part.written >= self._size:
            self._end_part()

    def close(self) -> list[DumpFile]:
        """Finish the last part and describe all parts; a table without rows has none."""
        self._end_part()
        with storage_errors(self._folder):
            durable.sync_folder(self._folder)
        return self._closed

    def abandon(self) -> None:
        """Close the file that is open, if any, without finishing it."""
        if self._part is not None:
            with suppress(OSError):  # what is still in its buffer may not fit on the volume
                self._part.file.close()

    def _end_part(self) -> None:
        if self._part is not None:
            self._closed.append(self._part.close(self._table.full_name, strict=self._strict))
            self._part = None


class _PartFile:
    """One part, counted and hashed while it is written."""

    def __init__(self, path: Path) -> None:
        with storage_errors(path):
            self.file: BinaryIO = path.open("xb")
        #: bytes before compression
        self.written = 0
        self._path = path
        self._rows = 0
        #: bytes after compression
        self._bytes = 0
        self._hash = sha256()
        self._compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()

    def write(self, line: bytes, rows: int) -> None:
        self._put(self._compressor.compress(line))
        self.written += len(line)
        self._rows += rows

    def close(self, table: str, *, strict: bool) -> DumpFile:
        self._put(self._compressor.flush())
        with storage_errors(self._path, self._bytes):
            durable.close(self.file)
        return DumpFile(
            name=self._path.name,
            table=table,
            rows=self._rows,
            bytes=self._bytes,
            sha256=self._hash.hexdigest(),
            strict=strict,
        )

    def _put(self, compressed: bytes) -> None:
        self._bytes += len(compressed)
        with storage_errors(self._path, self._bytes):
            self.file.write(compressed)
        self._hash.update(compressed)


def _stem(table: Table) -> str:
    """Build the start of a table's file names. If it is too long, it is cut and ends with a hash.

    All characters of the names except ASCII letters, digits, - and _ are escaped.
    """
    stem = f"{_safe(table.schema)}.{_safe(table.name)}"
    if len(stem) <= _LONGEST_STEM:
        return stem
    return f"{stem[: _LONGEST_STEM - 17]}-{blake2b(stem.encode(), digest_size=8).hexdigest()}"


def _safe(name: str) -> str:
    return re.sub(rb"[^A-Za-z0-9_-]", lambda match: b"%%%02X" % match[0][0], name.encode()).decode()

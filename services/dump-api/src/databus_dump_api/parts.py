"""Part files: the rows of one table, in files of bounded size."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Protocol

from databus_core.events import Row, Table
from databus_core.manifest import DumpFile, FileFormat
from databus_dump_api.json_lines import JsonLinesPart, RecordsPart
from databus_dump_api.parquet import ParquetPart
from databus_dump_api.part_file import PartFile
from databus_dump_api.store import Output

#: file names are limited to 255 bytes; the rest is for the part number and the suffix
_LONGEST_STEM = 200
_SUFFIXES = {
    FileFormat.JSONL: "jsonl.zst",
    FileFormat.PARQUET: "parquet",
    FileFormat.PARQUET_TYPED: "typed.parquet",
}


class _Part(Protocol):
    """A file that is being written."""

    file: PartFile

    @property
    def size(self) -> int: ...
    def write(self, rows: Any) -> None: ...
    def finish(self) -> None: ...
    def abandon(self) -> None: ...


class PartWriter:
    """Writes a table's rows to part files of one format and of about `size` bytes, JSON lines before compression.

    prefix: text before the number in a file's name.

    A part is published when it ends. All methods block, and raise ClaimLost, StorageFull, or errors of the storage.
    """

    def __init__(
        self,
        output: Output,
        table: Table,
        file_format: FileFormat,
        size: int,
        *,
        strict: bool = False,
        prefix: str = "",
    ) -> None:
        self._output = output
        self._table = table
        self._format = file_format
        self._size = size
        # Types are those of exact values.
        self._strict = strict and file_format is not FileFormat.PARQUET_TYPED
        self._stem = f"{_stem(table)}.{prefix}"
        self._suffix = _SUFFIXES.get(file_format, f"{file_format}.zst")
        self._part: _Part | None = None
        #: rows in the open part
        self._rows = 0
        self._closed: list[DumpFile] = []

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows; in JSON lines, as one line."""
        self._write(rows, len(rows))

    def write_records(self, records: Sequence[bytes], count: int) -> None:
        """Write lines with the records of `count` rows, in a format of records."""
        self._write(records, count)

    def _write(self, content: Sequence[Row] | Sequence[bytes], count: int) -> None:
        if self._part is None:
            name = f"{self._stem}{len(self._closed) + 1:05d}.{self._suffix}"
            file = PartFile(self._output.folder / name)
            self._part = _new_part(file, self._table, self._format, strict=self._strict)
        self._part.write(content)
        self._rows += count
        if self._part.size >= self._size:
            self._end_part(self._part)

    def close(self) -> list[DumpFile]:
        """Finish the last part and describe all parts; a table without rows has none."""
        if self._part is not None:
            self._end_part(self._part)
        return self._closed

    def abandon(self) -> None:
        """Remove the file that is open, if any."""
        if self._part is not None:
            self._part.abandon()

    def _end_part(self, part: _Part) -> None:
        part.finish()
        part.file.close()
        described = DumpFile(
            name=part.file.path.name,
            format=self._format,
            table=self._table.full_name,
            rows=self._rows,
            bytes=part.file.bytes,
            sha256=part.file.sha256,
            strict=self._strict,
        )
        self._closed.append(self._output.publish(described))
        self._part, self._rows = None, 0


def _new_part(file: PartFile, table: Table, file_format: FileFormat, *, strict: bool) -> _Part:
    if file_format is FileFormat.JSONL:
        return JsonLinesPart(file, table, strict=strict)
    if file_format in (FileFormat.PARQUET, FileFormat.PARQUET_TYPED):
        return ParquetPart(file, table, strict=strict, typed=file_format is FileFormat.PARQUET_TYPED)
    return RecordsPart(file)


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

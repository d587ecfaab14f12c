"""Reads a dump's files as `SnapshotRows`, table by table: one for each line of a file, or one for an empty table."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias

import msgspec
import zstandard

from databus_core.errors import DumpUnusable
from databus_core.events import Row, Table
from databus_core.manifest import DumpFile, FileFormat, Manifest, Mode
from databus_messages.formats.base import SnapshotRows

#: returns a context manager, inside which the dump's file exists as a local file
Fetch: TypeAlias = Callable[[DumpFile], AbstractAsyncContextManager[Path]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Line(msgspec.Struct, rename="pascal"):
    rows: list[Row]


_decode = msgspec.json.Decoder(_Line).decode


async def snapshots(manifest: Manifest, tables: Sequence[Table], fetch: Fetch) -> AsyncGenerator[SnapshotRows, None]:
    """Yield the rows of some tables of a complete dump. One line is read ahead, to mark the last rows of a table.

    Raises DumpUnusable for a dump without a position or without JSON lines, or if the name of a table is not unique in
    the dump.
    """
    if manifest.mode is Mode.CHUNKED:
        raise DumpUnusable(f"dump {manifest.id} is chunked and has no single position: request one without --chunked")
    if manifest.position is None:
        raise DumpUnusable(f"dump {manifest.id} has no position; request a new dump")
    time_us = (manifest.created - _EPOCH) // timedelta(microseconds=1)
    files_by_table = list(zip(tables, manifest.files_of(tables, FileFormat.JSONL), strict=True))
    # The first and the last table with rows get the marks `first` and `last`; if no table has rows, the first and the
    # last of all get them.
    marked = [table for table, files in files_by_table if any(file.rows for file in files)] or tables
    for table, files in files_by_table:
        async with aclosing(_lines(files, fetch)) as lines:
            rows: list[Row] = await anext(lines, [])
            first, last = True, False
            while not last:
                next_rows = await anext(lines, None)
                last = next_rows is None
                yield SnapshotRows(
                    table,
                    manifest.position,
                    time_us,
                    rows,
                    first=first and table is marked[0],
                    last=last and table is marked[-1],
                    first_of_table=first,
                    last_of_table=last,
                )
                rows, first = next_rows or [], False


async def _lines(files: Sequence[DumpFile], fetch: Fetch) -> AsyncGenerator[list[Row], None]:
    """Yield the rows of each line. Lines are read in a thread, so that the dump's lease can be renewed meanwhile."""
    for file in files:
        async with fetch(file) as path:
            with BufferedReader(zstandard.open(path, "rb")) as reader:
                while line := await asyncio.to_thread(reader.readline):
                    yield _decode(line).rows

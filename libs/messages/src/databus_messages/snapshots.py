"""The rows of a dump as formats are told them: a line of its files at a time, table by table."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from pathlib import Path
from typing import TypeAlias

import msgspec
import zstandard

from databus.errors import DumpUnusable
from databus.events import Row, Table
from databus.manifest import DumpFile, Manifest
from databus_messages.formats.base import SnapshotRows

#: gives a file to read, for as long as it is open
Fetch: TypeAlias = Callable[[DumpFile], AbstractAsyncContextManager[Path]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Line(msgspec.Struct, rename="pascal"):
    rows: list[Row]


_decode = msgspec.json.Decoder(_Line).decode


async def snapshots(manifest: Manifest, tables: Sequence[Table], fetch: Fetch) -> AsyncGenerator[SnapshotRows, None]:
    """Tell the rows of some of a complete dump's tables. Two lines are held at a time, to know which is the last."""
    if manifest.position is None:
        raise DumpUnusable(f"dump {manifest.id} has no position; request a new dump")
    time_us = (manifest.created - _EPOCH) // timedelta(microseconds=1)
    parts = list(zip(tables, manifest.files_of(tables), strict=True))
    filled = [table for table, files in parts if any(file.rows for file in files)] or tables
    for table, files in parts:
        async with aclosing(_lines(files, fetch)) as lines:
            rows: list[Row] = await anext(lines, [])
            first, last = True, False
            while not last:
                following = await anext(lines, None)
                last = following is None
                yield SnapshotRows(
                    table,
                    manifest.position,
                    time_us,
                    rows,
                    first=first and table is filled[0],
                    last=last and table is filled[-1],
                    first_of_table=first,
                    last_of_table=last,
                )
                rows, first = following or [], False


async def _lines(files: Sequence[DumpFile], fetch: Fetch) -> AsyncGenerator[list[Row], None]:
    """Read the rows of each line, without holding up what goes on beside: the lease is renewed meanwhile."""
    for file in files:
        async with fetch(file) as path:
            with BufferedReader(zstandard.open(path, "rb")) as lines:
                while line := await asyncio.to_thread(lines.readline):
                    yield _decode(line).rows

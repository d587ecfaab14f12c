"""Reads the rows of a dump's tables over several views at the same time, and writes their files.

A view reads one table, or one range of a large table, after another.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from databus_binlog.row_batch import RowBatch
from databus_binlog.session import Session
from databus_changes.snapshot.limits import ReadLimits
from databus_changes.snapshot.views import View
from databus_core.manifest import DumpFile
from databus_core.runtime import uninterrupted
from databus_dump_api.progress import Progress
from databus_dump_api.table_copy import TableCopy
from databus_dump_api.tables import require_unchanged
from databus_wire.packed_rows import PackedRows

#: bytes of packed rows that a thread writes at once
_CHUNK = 2**20


async def write_tables(
    tables: Sequence[TableCopy], views: Sequence[View], catalog: Session, limits: ReadLimits, counted: Progress
) -> list[DumpFile]:
    """Write the files of all tables. Raises SchemaMismatch if DDL has changed a table meanwhile."""
    shares = deque((table, number) for table in tables for number in range(len(table.ranges)))
    checking = asyncio.Lock()

    async def read(view: View) -> None:
        while shares:
            table, number = shares.popleft()
            table.complete(number, await write_rows(view, table, number, limits, counted))
            if table.is_complete:
                async with checking:
                    await require_unchanged(catalog, table.state)
            await view.release_table()

    await read_together(map(read, views), limits)
    return [file for table in tables for file in table.files()]


async def read_together(readers: Iterable[Coroutine[Any, Any, None]], limits: ReadLimits) -> None:
    """Run readers at the same time, and watch the limits. If one fails, interrupt the others and raise its error."""
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(limits.watch())
            await asyncio.wait([tasks.create_task(reader) for reader in readers])
            watching.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def write_rows(
    view: View, table: TableCopy, number: int, limits: ReadLimits, counted: Progress
) -> list[DumpFile]:
    """Write the files of a range of a table."""
    parts = table.parts(number)

    def write(chunk: Sequence[RowBatch]) -> int:
        written = 0
        for batch in chunk:
            if rows := table.published.rows(PackedRows(batch.rows)):
                for each in parts:
                    each.write(rows)
                written += len(rows)
        return written

    try:
        found = view.batches(table.select(number))
        async with aclosing(found) as batches, aclosing(_chunks(batches)) as chunks:
            async for chunk in chunks:
                written = await uninterrupted(asyncio.to_thread(write, chunk))
                read = sum(batch.count for batch in chunk)
                counted.add(read=read, written=written)
                limits.count(read)
                await limits.wait()
        return [file for each in parts for file in await uninterrupted(asyncio.to_thread(each.close))]
    finally:
        for each in parts:
            each.abandon()


async def _chunks(batches: AsyncIterator[RowBatch]) -> AsyncGenerator[Sequence[RowBatch], None]:
    """Collect batches, because each step into a thread costs as much as some hundred rows."""
    chunk: list[RowBatch] = []
    async for batch in batches:
        chunk.append(batch)
        if sum(len(each.rows) for each in chunk) >= _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk

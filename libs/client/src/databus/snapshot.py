"""The rows of a dump: choose or request one, download it under a lease, and read its files line by line."""

import asyncio
import io
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import zstandard

from databus.block import Block
from databus.bookmark import Bookmark, Join, Snapshot
from databus.chunks import parts_of
from databus.formats.databus import DatabusDecoder
from databus.origin import Origin
from databus.source import Source
from databus_binlog import Position
from databus_core.errors import ChangesLost, DumpUnusable
from databus_core.events import Table
from databus_core.kafka_ends import Offsets
from databus_core.kafka_progress import read_progress
from databus_core.manifest import DumpFile, FileFormat, Manifest, Mode
from databus_core.pipeline_passed import wait_until_passed
from databus_core.table_filter import TableFilter
from databus_core.usable_dumps import is_usable, require_rules

#: files that are downloaded while the rows of others are delivered
_AHEAD = 3
#: bytes of lines that are decompressed at a time
_BLOCK = 2**20


async def choose(source: Source) -> tuple[Manifest, Offsets]:
    """Choose the newest dump that a program can begin with, or request one; return it, and where Kafka is read from.

    Raises DumpUnusable, DumpApiUnavailable, KafkaUnavailable and RulesDiffer.
    """
    settings = source.settings
    progress = await read_progress(settings)
    for manifest in await source.api.dumps():
        if _is_joinable(manifest) and is_usable(manifest, progress, settings, source.tables, tuple(Mode)):
            try:
                return manifest, await source.topics.starts_after(manifest)
            except ChangesLost:
                break  # older ones begin even earlier
    manifest = await source.api.take(list(source.tables))
    require_rules(settings, manifest)
    return manifest, await source.topics.starts_after(manifest)


def _is_joinable(manifest: Manifest) -> bool:
    """Return whether a dump has rows to read, and it is known when the pipeline had passed it.

    Later nobody knows: the pipeline may have read another server, and then this one again.
    """
    return FileFormat.JSONL in manifest.formats and manifest.passed is not None


async def beginning(source: Source, manifest: Manifest, starts: Offsets) -> Bookmark:
    """Return the bookmark before the first row of a dump; waits as `_join` does."""
    return Bookmark(
        pipeline=source.settings.name,
        tables=list(source.tables),
        offsets=starts,
        after=manifest.transaction,
        snapshot=Snapshot(manifest.id),
        join=await _join(source, manifest),
    )


async def _join(source: Source, manifest: Manifest) -> Join:
    """Return which records a dump has. Waits until the pipeline has passed its position, unless the dump says when.

    Raises DumpUnusable if the pipeline has failed over to another server meanwhile.
    """
    chunks = parts_of(manifest, {table.full_name for table in tables_of(source, manifest)})
    # The first of all tables, not only of those that are read: a table that was created later is not in the dump.
    positions = [chunk.position for chunk in manifest.chunks if chunk.position]
    position = min(positions, key=lambda each: each.log_order, default=manifest.position)
    if position is None or not position.file:
        raise DumpUnusable(f"dump {manifest.id} has no binlog file position: request a new dump")
    moment = manifest.passed or await wait_until_passed(source.settings, manifest, source.topics)
    return Join(Position("", position.file, position.offset), moment.transaction, manifest.transaction, chunks)


async def rows_from(source: Source, begin: Snapshot) -> AsyncGenerator[Block]:
    """Return the rows of a dump, of which a lease is held: those of one line of a file at a time.

    The action of each is `insert`. Raises DumpUnusable, also if the dump was deleted meanwhile.
    """
    manifest = await source.api.dump(begin.dump)
    return _rows(source, manifest, _files_from(begin, _files(source, manifest), manifest), begin)


@asynccontextmanager
async def dump_of(source: Source) -> AsyncIterator[tuple[Table, Join, AsyncGenerator[Block]]]:
    """Take a dump of one table, and hold a lease of it: give the table, the changes that the dump has, and its rows.

    Raises DumpRefused if there is no such table.
    """
    manifest = await source.api.take(list(source.tables))
    require_rules(source.settings, manifest)
    async with source.api.leased(manifest.id):
        join = await _join(source, manifest)
        yield manifest.tables[0], join, _rows(source, manifest, _files(source, manifest), Snapshot(manifest.id))


async def _rows(
    source: Source, manifest: Manifest, files: Sequence[DumpFile], begin: Snapshot
) -> AsyncGenerator[Block]:
    time_ms = int(manifest.created.timestamp() * 1000)
    decoder = DatabusDecoder()
    async with aclosing(_downloaded(source, manifest, files)) as downloads:
        async for file, path in downloads:
            first_line, first_row = (begin.line, begin.rows) if file.name == begin.file else (0, 0)
            lines = enumerate(_lines(path))
            while (found := await asyncio.to_thread(next, lines, None)) is not None:
                line, text = found
                if line < first_line:
                    continue
                position = manifest.position if file.chunk is None else manifest.chunks[file.chunk].position
                origin = Origin(position=position, time_ms=time_ms, file=file.name, line=line, is_snapshot=True)
                yield decoder.block(decoder.message(text), origin, first_row if line == first_line else 0)


async def _downloaded(
    source: Source, manifest: Manifest, files: Sequence[DumpFile]
) -> AsyncGenerator[tuple[DumpFile, Path]]:
    """Yield the files, each downloaded; the next ones are downloaded meanwhile."""
    with TemporaryDirectory(prefix="databus-") as folder:
        paths = [Path(folder) / file.name for file in files]
        started: list[asyncio.Task[None]] = []
        try:
            for index, (file, path) in enumerate(zip(files, paths, strict=True)):
                for ahead in range(len(started), min(index + _AHEAD, len(files))):
                    download = source.api.download(manifest.id, files[ahead], paths[ahead])
                    started.append(asyncio.create_task(download))
                await started[index]
                yield file, path
                path.unlink()
        finally:
            for task in started:
                task.cancel()
            await asyncio.gather(*started, return_exceptions=True)


def tables_of(source: Source, manifest: Manifest) -> list[Table]:
    """List the tables of a dump that are read."""
    wanted = TableFilter(source.tables)
    return [table for table in manifest.tables if wanted.matches(table.schema, table.name)]


def _files(source: Source, manifest: Manifest) -> list[DumpFile]:
    """List the files of the tables that are read. Raises DumpUnusable if a table's values are not exact."""
    files = [file for each in manifest.files_of(tables_of(source, manifest), FileFormat.JSONL) for file in each]
    if strict := next((file for file in files if file.strict), None):
        raise DumpUnusable(
            f"dump {manifest.id}: the rows of {strict.table} were written with compat: strict and lack information: "
            "remove this option for the table (publisher.options, publisher.routes)"
        )
    return files


def _files_from(begin: Snapshot, files: list[DumpFile], manifest: Manifest) -> list[DumpFile]:
    """Leave out the files that are done."""
    if not begin.file:
        return files
    names = [file.name for file in files]
    if begin.file not in names:
        text = f"dump {manifest.id} has no file {begin.file} of the tables that are read: begin again with a snapshot"
        raise DumpUnusable(text)
    return files[names.index(begin.file) :]


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as compressed:
        reader = zstandard.ZstdDecompressor().stream_reader(compressed, read_size=_BLOCK, read_across_frames=True)
        yield from io.BufferedReader(reader, _BLOCK)

"""Take a chunked dump: each chunk of a table over a short read view, at a position of its own.

What is complete is in the manifest, so a dump goes on after its process was killed, also in another replica. The places
in Kafka from which consumers read are those of the first begin: every change after them is in Kafka. A change is in the
dump if it is not after the position of the chunk to which its key belongs.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from time import monotonic

from msgspec.structs import replace

from databus_binlog import Position
from databus_changes.snapshot.connection import connect_snapshot
from databus_changes.snapshot.limits import ReadLimits
from databus_changes.snapshot.ranges import KeyRange
from databus_changes.snapshot.view import needs_lock, start_current_view
from databus_changes.snapshot.views import View
from databus_core.errors import DumpUnusable, RetryableError, SchemaMismatch, SourceUnavailable
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.manifest import Chunk, DumpFile, FileFormat, Manifest, State
from databus_core.routes import fingerprint
from databus_core.runtime import uninterrupted
from databus_core.settings import Settings
from databus_dump_api.preparation import SourceTables, begin, limits_of, open_tables, require_all
from databus_dump_api.problems import StorageFull
from databus_dump_api.progress import Progress
from databus_dump_api.rows import read_together, write_rows
from databus_dump_api.store import Claim, ClaimLost
from databus_dump_api.table_copy import TableCopy, formats_of_rows
from databus_dump_api.tables import require_unchanged

log = get_logger(__name__)

#: seconds between two saves of the manifest while chunks are completed
_SAVE_SECONDS = 1.0
#: seconds until an attempt that failed is repeated
_RETRY_SECONDS = 5.0
_AGAIN = "request a new dump"


async def take(settings: Settings, manifest: Manifest, claim: Claim, counted: Progress) -> Manifest:
    """Write what a chunked dump lacks, and return its complete manifest. Retries while a service is unavailable."""
    dump = _ChunkedDump(settings, manifest, claim, counted)
    while True:
        try:
            await dump.go_on()
        except (ClaimLost, StorageFull):
            raise
        except RetryableError as error:
            text = f"the dump goes on in {_RETRY_SECONDS:g} s: {' '.join(str(error).split())}"
            log.warning(LogEvent.DUMP_INTERRUPTED, text)
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return dump.complete()


class _ChunkedDump:
    """A dump as far as it has come."""

    def __init__(self, settings: Settings, manifest: Manifest, claim: Claim, counted: Progress) -> None:
        self._settings = settings
        self._manifest = manifest
        self._claim = claim
        self._counted = counted
        self._files = list(manifest.files)
        self._saving = asyncio.Lock()
        self._saved_at = 0.0

    async def go_on(self) -> None:
        """Read all chunks that are not complete. Raises DumpUnusable or SchemaMismatch if they would not fit."""
        if not self._manifest.chunks:
            begun, progress = await begin(self._settings, self._manifest)
        else:
            begun, progress = self._manifest, await read_progress(self._settings, to_end=True)
        async with open_tables(self._settings, begun, progress, self._claim) as found:
            if begun.chunks:
                _require_same(self._settings, begun, found)
            else:
                await self._plan(begun, found)
            self._counted.begin(found.estimated_rows, sum(file.rows for file in self._rows_files()))
            await self._read(found)
        await self._save()

    def complete(self) -> Manifest:
        """Return the complete manifest."""
        files = sorted(self._files, key=lambda file: (file.chunk, file.format, file.name))
        return replace(self._manifest, state=State.COMPLETE, completed=datetime.now(UTC), files=tuple(files))

    async def _plan(self, begun: Manifest, found: SourceTables) -> None:
        names = [table.full_name for table in found.published]
        if shared := next((name for name in names if names.count(name) > 1), None):
            raise DumpUnusable(f"there are two tables named {shared}: request a dump with only one of them")
        for copy in found.copies:
            await copy.divide(found.catalog, chunked=True)
        self._manifest = replace(
            begun,
            source=found.source,
            formats=tuple(each for each in FileFormat if each in formats_of_rows(self._settings.dumps)),
            tables=found.published,
            versions=tuple(copy.state.created for copy in found.copies),
            chunks=tuple(
                Chunk(table=copy.published.table.full_name, low=each.low, high=each.high)
                for copy in found.copies
                for each in copy.ranges
            ),
        )
        await self._save()

    async def _read(self, found: SourceTables) -> None:
        shares = deque(self._shares(found.copies))
        limits = limits_of(self._settings)
        checking = asyncio.Lock()

        async def read() -> None:
            async with connect_snapshot(self._settings.source, found.host) as session:
                if session.server.identity != found.catalog.server.identity:
                    raise SourceUnavailable(f"connections to {found.host} reach different servers")
                while shares:
                    copy, number, chunk = shares.popleft()
                    before = self._manifest.end  # others complete chunks at later positions meanwhile
                    position = await start_current_view(session)
                    _require_later(position, before)
                    if self._manifest.end is None:  # then consumers need all changes of other tables
                        async with checking:
                            await require_all(self._settings, self._manifest, found.catalog)
                    await self._read_chunk(View(position, session), copy, number, chunk, limits)
                    await session.query("COMMIT")  # closes the view, and lets DDL go on
                    if copy.is_complete:
                        async with checking:
                            await require_unchanged(found.catalog, copy.state)

        # The global read lock waits for SELECTs that are running, and all writes wait for it.
        count = 1 if await needs_lock(found.catalog) else self._settings.dumps.connections
        await read_together([read() for _ in range(count)], limits)

    def _shares(self, copies: Sequence[TableCopy]) -> list[tuple[TableCopy, int, int]]:
        """Return what is to be read: a table, the number of its range, and the index of the chunk."""
        shares = []
        numbered = groupby(enumerate(self._manifest.chunks), key=lambda found: found[1].table)
        for copy, (_, chunks) in zip(copies, numbered, strict=True):
            found = list(chunks)
            copy.ranges = [KeyRange(chunk.low, chunk.high) for _, chunk in found]
            for number, (index, chunk) in enumerate(found):
                if chunk.position:
                    copy.complete(number, [])
                else:
                    shares.append((copy, number, index))
        return shares

    async def _read_chunk(self, view: View, copy: TableCopy, number: int, chunk: int, limits: ReadLimits) -> None:
        files = await write_rows(view, copy, number, limits, self._counted)
        copy.complete(number, files)
        async with self._saving:
            chunks = list(self._manifest.chunks)
            chunks[chunk] = replace(chunks[chunk], position=view.position)
            self._files += [replace(file, chunk=chunk) for file in files]
            self._manifest = replace(self._manifest, chunks=tuple(chunks), attempts=0)
        if monotonic() - self._saved_at > _SAVE_SECONDS:
            await self._save()

    async def _save(self) -> None:
        async with self._saving:
            self._saved_at = monotonic()
            self._manifest = replace(self._manifest, files=tuple(self._files))
            await uninterrupted(asyncio.to_thread(self._claim.save, self._manifest))

    def _rows_files(self) -> list[DumpFile]:
        formats = self._manifest.formats
        return [file for file in self._files if file.format == formats[0]]


def _require_later(position: Position, before: Position | None) -> None:
    """Raise DumpUnusable if the server's binlog began again: positions before and after that do not compare."""
    if before and position.log_order < before.log_order:
        raise DumpUnusable(f"the server's binlog was reset during the dump: {_AGAIN}")


def _require_same(settings: Settings, manifest: Manifest, found: SourceTables) -> None:
    """Raise DumpUnusable or SchemaMismatch if what is missing would not fit what is complete."""
    if manifest.server != found.catalog.server.identity:
        raise DumpUnusable(f"the pipeline reads another server than when the dump began: {_AGAIN}")
    if manifest.rules != fingerprint(settings.publisher.rules):
        raise DumpUnusable(f"publisher.routes was changed during the dump: {_AGAIN}")
    if set(manifest.formats) != set(formats_of_rows(settings.dumps)):
        raise DumpUnusable(f"dumps.formats was changed during the dump: {_AGAIN}")
    for copy, table, version in zip(found.copies, manifest.tables, manifest.versions, strict=True):
        if (copy.published.table, copy.state.created) != (table, version):
            raise SchemaMismatch(f"table {table.full_name} was changed by DDL during the dump: {_AGAIN}")

"""All dumps of the pipeline: requested, taken one after the other, leased, deleted, retired.

Leasing and deleting exclude each other although the leases are in Redis and the dumps on a disk: who leases writes the
lease first and looks then whether the dump is being deleted; who deletes marks the dump first and looks then for
leases. Whichever comes second sees the other. One process owns a storage, so the mark can be in its memory; a deletion
that was begun is finished after a crash because its manifest says `deleted` before the first file goes.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from databus.errors import DatabusError
from databus.kafka_progress import read_progress
from databus.manifest import DumpFile, Manifest, State
from databus.metrics import DUMPS, LEASE_CONFLICTS
from databus.settings import Settings
from databus_dump_api import snapshot
from databus_dump_api.leases import Leases
from databus_dump_api.problems import InUse, NotBegun, NotComplete, UnknownDump, UnknownFile, UnknownLease
from databus_dump_api.source import connect_read
from databus_dump_api.store import Store
from databus_dump_api.tables import resolve

log = logging.getLogger("databus")

#: seconds between signs of life asked of Redis
_PING = 5.0


class Dumps:
    """What the HTTP routes and the worker share."""

    def __init__(self, settings: Settings, store: Store, leases: Leases) -> None:
        self._settings = settings
        self._store = store
        self._leases = leases
        self._requested = asyncio.Event()
        self._deleting: set[str] = set()

    async def request(self, patterns: Sequence[str] | None) -> Manifest:
        """Accept a dump of the tables that match. Raises UnknownTables or NotBegun."""
        progress = await read_progress(self._settings)
        async with connect_read(self._settings.source, progress) as (_, session):
            tables = await resolve(session, self._settings, patterns)
        # What is changed after the dump must not be before the pipeline's start.
        if progress is None or progress.position is None:
            raise NotBegun("the pipeline has not begun: start reader and publisher, then request the dump again")
        created = datetime.now(UTC)
        manifest = Manifest(
            id=self._store.new_id(created),
            pipeline=self._settings.name,
            state=State.PENDING,
            created=created,
            tables=tables,
        )
        await self._store.save(manifest)
        self._requested.set()
        return manifest

    def newest_first(self) -> list[Manifest]:
        """Give all dumps."""
        return self._store.newest_first()

    def get(self, dump: str) -> Manifest:
        """Give a dump. Raises UnknownDump."""
        manifest = self._store.get(dump)
        if manifest is None:
            raise UnknownDump(f"there is no dump {dump}")
        return manifest

    def file(self, dump: str, name: str) -> tuple[Path, DumpFile]:
        """Find a file by its manifest, never by asking the disk. Raises UnknownDump, NotComplete, UnknownFile."""
        for file in self._readable(dump).files:
            if file.name == name:
                return self._store.folder(dump) / file.name, file
        raise UnknownFile(f"dump {dump} has no file {name}")

    async def lease(self, dump: str) -> str:
        """Take a lease. Raises UnknownDump or NotComplete."""
        self._readable(dump)
        lease = await self._leases.take(dump)
        try:
            self._readable(dump)
        except DatabusError:
            await self._leases.release(dump, lease)
            raise
        return lease

    async def renew(self, dump: str, lease: str) -> None:
        """Begin a lease's time anew. Raises UnknownLease."""
        if not await self._leases.renew(dump, lease):
            raise UnknownLease(f"dump {dump} has no lease {lease}; it may have expired")

    async def release(self, dump: str, lease: str) -> None:
        """End a lease. Raises UnknownLease."""
        if not await self._leases.release(dump, lease):
            raise UnknownLease(f"dump {dump} has no lease {lease}; it may have expired")

    async def delete(self, dump: str) -> None:
        """Delete a dump for good. Raises UnknownDump, or InUse while it is leased or being taken."""
        manifest = self.get(dump)
        if manifest.state in (State.PENDING, State.RUNNING):
            raise InUse(f"dump {dump} is {manifest.state}: it can be deleted once it has ended")
        if dump in self._deleting:
            raise InUse(f"dump {dump} is being deleted")
        self._deleting.add(dump)
        try:
            if await self._leases.live(dump):
                LEASE_CONFLICTS.inc()
                raise InUse(f"dump {dump} is being read: it can be deleted once its leases have ended")
            await self._store.remove(manifest)
        finally:
            self._deleting.discard(dump)

    async def work(self) -> None:
        """Take the requested dumps, oldest first, for ever. Raises RedisUnavailable."""
        while True:
            while pending := self._oldest_pending():
                await self._take(pending)
                await self._retire()
            with suppress(TimeoutError):
                async with asyncio.timeout(_PING):
                    await self._requested.wait()
            self._requested.clear()
            await self._leases.ping()

    async def _take(self, manifest: Manifest) -> None:
        """Take one dump; it ends complete or failed."""
        manifest = msgspec.structs.replace(manifest, state=State.RUNNING)
        await self._store.save(manifest)
        log.info("dump %s of %d tables begins", manifest.id, len(manifest.tables))
        try:
            manifest = await snapshot.take(self._settings, manifest, self._store.folder(manifest.id))
            await self._store.save(manifest)
            log.info("dump %s is complete at %s", manifest.id, manifest.position)
        except (DatabusError, OSError) as error:
            log.error("dump %s failed: %s", manifest.id, error)
            await self._store.fail(manifest, " ".join(str(error).split()))
        DUMPS.labels(self.get(manifest.id).state).inc()

    async def _retire(self) -> None:
        """Delete what is older than the dumps to keep; what is being read now goes another time."""
        complete = [manifest for manifest in self.newest_first() if manifest.state is State.COMPLETE]
        if len(complete) < self._settings.dumps.keep:
            return
        oldest_kept = complete[self._settings.dumps.keep - 1].created
        for manifest in reversed(self.newest_first()):
            if manifest.created < oldest_kept:
                with suppress(InUse):
                    await self.delete(manifest.id)

    def _oldest_pending(self) -> Manifest | None:
        pending = (manifest for manifest in self._store.newest_first() if manifest.state is State.PENDING)
        return min(pending, key=lambda manifest: manifest.created, default=None)

    def _readable(self, dump: str) -> Manifest:
        manifest = self.get(dump)
        if dump in self._deleting:
            raise NotComplete(f"dump {dump} is being deleted")
        if manifest.state is not State.COMPLETE:
            raise NotComplete(f"dump {dump} is {manifest.state}")
        return manifest

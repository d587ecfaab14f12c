"""All dumps of a pipeline: requested, taken one at a time, leased, deleted, expired.

A dump with a lease is never deleted, although leases are in Redis and dumps on disk. Taking a lease writes the lease
first and then checks whether the dump is being deleted; deleting marks the dump first and then looks for leases.
Whichever comes second sees the other. The mark is in memory, because only one process owns a storage.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from databus_core.cancellation import raise_if_cancelled
from databus_core.errors import DatabusError, PipelineNotStarted
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import bound, get_logger, position_fields
from databus_core.manifest import DumpFile, Manifest, State
from databus_core.metrics import DUMPS, LEASE_CONFLICTS
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.settings import Settings
from databus_dump_api import snapshot
from databus_dump_api.leases import Leases
from databus_dump_api.problems import (
    InUse,
    NotComplete,
    QueueFull,
    UnknownDump,
    UnknownFile,
    UnknownLease,
)
from databus_dump_api.progress import Progress
from databus_dump_api.store import DumpStore
from databus_dump_api.tables import find_tables

log = get_logger(__name__)

#: limit of requests that are being accepted or whose dumps are pending
_MAX_WAITING = 10


class DumpManager:
    """The dumps, shared by the HTTP routes and the worker that takes them.

    Methods that use leases also raise the errors of `redis_errors`.
    """

    def __init__(self, settings: Settings, store: DumpStore, leases: Leases) -> None:
        self._settings = settings
        self._store = store
        self._leases = leases
        self._requested = asyncio.Event()
        self._deleting: set[str] = set()
        #: number of requests that are being accepted
        self._arriving = 0

    async def request(self, patterns: Sequence[str] | None) -> Manifest:
        """Accept a request for a dump of the published tables that match `patterns` (None: all).

        The worker takes the dump later. Raises QueueFull, UnknownTables, PipelineNotStarted, StorageFull,
        StorageUnavailable, and the errors of `read_progress` and `connect_pipeline_host`.
        """
        if self._arriving + len(self._in_state(State.PENDING)) >= _MAX_WAITING:
            raise QueueFull(f"{_MAX_WAITING} requests are waiting: request the dump again when some are complete")
        self._arriving += 1
        try:
            return await self._accept(patterns)
        finally:
            self._arriving -= 1

    async def _accept(self, patterns: Sequence[str] | None) -> Manifest:
        await asyncio.to_thread(self._store.require_space)
        progress = await read_progress(self._settings)
        async with connect_pipeline_host(self._settings.source, progress) as (_, session):
            tables = await find_tables(session, self._settings, patterns)
        # Kafka must have every change after the dump, so the pipeline must have started before it.
        if progress is None or progress.position is None:
            raise PipelineNotStarted(
                "the pipeline has no position yet: start reader and publisher, then request the dump again"
            )
        created = datetime.now(UTC)
        manifest = Manifest(
            id=self._store.new_id(created),
            pipeline=self._settings.name,
            state=State.PENDING,
            created=created,
            requested=None if patterns is None else tuple(patterns),
            tables=tables,
        )
        await self._store.save(manifest)
        self._requested.set()
        return manifest

    def newest_first(self) -> list[Manifest]:
        """Return the manifests of all dumps, the newest first."""
        return self._store.newest_first()

    def get(self, dump: str) -> Manifest:
        """Return a dump's manifest. Raises UnknownDump."""
        manifest = self._store.get(dump)
        if manifest is None:
            raise UnknownDump(f"there is no dump {dump}")
        return manifest

    def file(self, dump: str, name: str) -> tuple[Path, DumpFile]:
        """Look a file up in the manifest, never on disk. Raises UnknownDump, NotComplete or UnknownFile."""
        for file in self._readable(dump).files:
            if file.name == name:
                return self._store.folder(dump) / file.name, file
        raise UnknownFile(f"dump {dump} has no file {name}")

    async def lease(self, dump: str) -> str:
        """Take a lease and return its id. Raises UnknownDump or NotComplete."""
        self._readable(dump)
        lease = await self._leases.take(dump)
        try:
            self._readable(dump)
        except DatabusError:
            await self._leases.release(dump, lease)
            raise
        return lease

    async def renew(self, dump: str, lease: str) -> None:
        """Reset a lease's expiry. Raises UnknownLease."""
        if not await self._leases.renew(dump, lease):
            raise UnknownLease(f"dump {dump} has no lease {lease}; it may have expired")

    async def release(self, dump: str, lease: str) -> None:
        """End a lease. Raises UnknownLease."""
        if not await self._leases.release(dump, lease):
            raise UnknownLease(f"dump {dump} has no lease {lease}; it may have expired")

    async def delete(self, dump: str) -> None:
        """Delete a dump and its files.

        Raises UnknownDump, or InUse for a dump that is leased, already being deleted, or neither complete nor failed.
        """
        manifest = self.get(dump)
        if manifest.state in (State.PENDING, State.RUNNING):
            raise InUse(f"dump {dump} is {manifest.state}: it can be deleted once it is complete or failed")
        if dump in self._deleting:
            raise InUse(f"dump {dump} is being deleted")
        self._deleting.add(dump)
        try:
            if await self._leases.is_leased(dump):
                LEASE_CONFLICTS.inc()
                raise InUse(f"dump {dump} is being read: it can be deleted once its leases have ended")
            await self._store.remove(dump)
        finally:
            self._deleting.discard(dump)

    async def work(self) -> None:
        """Take requested dumps, the oldest first, forever.

        A dump that an earlier call has not finished becomes failed. Raises StorageUnavailable; then a dump that is
        pending remains so.
        """
        for manifest in self._in_state(State.RUNNING):
            await self._fail(manifest, "it was interrupted; request a new dump")
        while True:
            while pending := self._in_state(State.PENDING):
                with bound(dump=pending[-1].id):
                    await self._take(pending[-1])
                await self._delete_expired()
            await self._requested.wait()
            self._requested.clear()

    async def _take(self, manifest: Manifest) -> None:
        """Take one dump; it ends as complete or failed."""
        manifest = msgspec.structs.replace(manifest, state=State.RUNNING)
        await self._store.save(manifest)
        log.info(LogEvent.DUMP_STARTED, "taking a dump", tables=len(manifest.tables))
        try:
            manifest = await snapshot.take(self._settings, manifest, self._store.folder(manifest.id), Progress())
            await self._store.save(manifest)
        except (DatabusError, OSError) as error:
            raise_if_cancelled()
            await self._fail(manifest, " ".join(str(error).split()))
        else:
            log.info(LogEvent.DUMP_COMPLETED, "the dump is complete", **position_fields(manifest.position))
            DUMPS.labels(State.COMPLETE).inc()

    async def _fail(self, manifest: Manifest, reason: str) -> None:
        log.error(LogEvent.DUMP_FAILED, f"the dump failed: {reason}", dump=manifest.id)
        DUMPS.labels(State.FAILED).inc()
        await self._store.fail(manifest, reason)

    async def _delete_expired(self) -> None:
        """Delete each dump that `dumps.keep` newer ones replace. Leased dumps are left to a later call."""
        ended = [*self._in_state(State.COMPLETE), *self._in_state(State.FAILED)]
        for manifest in reversed(self.newest_first()):
            newer = sum(_replaces(other, manifest) for other in ended)
            if manifest in ended and newer >= self._settings.dumps.keep:
                with suppress(InUse, UnknownDump):  # a client may delete it first
                    await self.delete(manifest.id)

    def _in_state(self, state: State) -> list[Manifest]:
        return [manifest for manifest in self.newest_first() if manifest.state is state]

    def _readable(self, dump: str) -> Manifest:
        manifest = self.get(dump)
        if dump in self._deleting:
            raise NotComplete(f"dump {dump} is being deleted")
        if manifest.state is not State.COMPLETE:
            raise NotComplete(f"dump {dump} is {manifest.state}")
        return manifest


def _replaces(newer: Manifest, older: Manifest) -> bool:
    """Return whether a dump is newer than another of the same tables, and complete unless both are failed."""
    if newer.created <= older.created or newer.state not in (State.COMPLETE, older.state):
        return False
    return newer.requested == older.requested or _table_names(newer) == _table_names(older)


def _table_names(manifest: Manifest) -> set[tuple[str, str]]:
    return {(table.schema, table.name) for table in manifest.tables}

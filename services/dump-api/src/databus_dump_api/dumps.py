"""The dumps of a pipeline as clients see and change them: requested, cancelled, leased, deleted.

A dump with a lease is never deleted, although leases are in Redis and dumps on disk. Taking a lease writes the lease
first and then checks whether the dump is being deleted, and still there; deleting writes that first and then looks
for leases, once more after the dump is hidden. Whichever comes second sees the other.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from databus_core.errors import DatabusError, PipelineNotStarted
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.manifest import DumpFile, Manifest, Mode, State
from databus_core.metrics import dumps as metrics
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.settings import Settings
from databus_dump_api.leases import Leases
from databus_dump_api.owners import Owners
from databus_dump_api.problems import (
    InUse,
    NotComplete,
    QueueFull,
    UnknownDump,
    UnknownFile,
    UnknownLease,
)
from databus_dump_api.store import ClaimLost, DumpStore
from databus_dump_api.tables import find_tables

log = get_logger(__name__)

Reading: TypeAlias = AbstractAsyncContextManager[AsyncIterator[bytes]]

#: limit of requests that are being accepted or whose dumps are pending
_MAX_WAITING = 10


class DumpManager:
    """The dumps, for the HTTP routes. `wake` is called when a dump was requested.

    Methods also raise StorageUnavailable, and those that use leases the errors of `redis_errors`.
    """

    def __init__(
        self, settings: Settings, store: DumpStore, leases: Leases, owners: Owners, wake: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._store = store
        self._leases = leases
        self._owners = owners
        self._wake = wake
        #: number of requests that are being accepted
        self._arriving = 0

    async def request(self, patterns: Sequence[str] | None, mode: Mode = Mode.VIEW, schedule: str = "") -> Manifest:
        """Accept a request for a dump of the published tables that match `patterns` (None: all).

        A worker takes the dump later. Raises QueueFull, UnknownTables, PipelineNotStarted, StorageFull,
        StorageUnavailable, and the errors of `read_progress` and `connect_pipeline_host`.
        """
        self._arriving += 1
        try:
            pending = sum(each.state is State.PENDING for each in await self._store.newest_first())
            if self._arriving + pending > _MAX_WAITING:
                raise QueueFull(f"{_MAX_WAITING} requests are waiting: request the dump again when some are complete")
            return await self._accept(patterns, mode, schedule)
        finally:
            self._arriving -= 1

    async def _accept(self, patterns: Sequence[str] | None, mode: Mode, schedule: str) -> Manifest:
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
            mode=mode,
            requested=None if patterns is None else tuple(patterns),
            schedule=schedule,
            tables=tables,
        )
        await self._store.add(manifest)
        self._wake()
        return manifest

    async def newest_first(self) -> list[Manifest]:
        """Return the manifests of all dumps, the newest first."""
        return await self._store.newest_first()

    async def get(self, dump: str) -> Manifest:
        """Return a dump's manifest. Raises UnknownDump."""
        manifest = await self._store.get(dump)
        if manifest is None:
            raise UnknownDump(f"there is no dump {dump}")
        return manifest

    async def with_progress(self, manifest: Manifest) -> Manifest:
        """Return a manifest; if the dump is running, with its progress as far as Redis knows it."""
        if manifest.state is State.RUNNING:
            with suppress(DatabusError):
                return msgspec.structs.replace(manifest, progress=await self._owners.progress(manifest.id))
        return manifest

    async def file(self, dump: str, name: str) -> DumpFile:
        """Look a file up in the manifest, never in the storage. Raises UnknownDump, NotComplete or UnknownFile."""
        for file in (await self._readable(dump)).files:
            if file.name == name:
                return file
        raise UnknownFile(f"dump {dump} has no file {name}")

    def reading(
        self, dump: str, file: DumpFile, start: int, stop: int
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file, and give its bytes from `start` to before `stop`, in chunks."""
        return self._store.reading(dump, file, start, stop)

    async def cancel(self, dump: str) -> Manifest:
        """Cancel a dump that has not ended; its files are removed. Raises UnknownDump, InUse or ClaimLost."""
        manifest = await self.get(dump)
        if not manifest.state.ended:
            try:
                claim, manifest = await self._store.claim(dump)
                manifest = await self._store.end(claim, manifest, State.CANCELLED, "a client has cancelled it")
                log.info(LogEvent.DUMP_CANCELLED, "a client has cancelled the dump", dump=dump)
                metrics.ENDED.labels(State.CANCELLED).inc()
            except ClaimLost:
                manifest = await self.get(dump)
                if not manifest.state.ended:
                    raise
        if manifest.state is not State.CANCELLED:
            raise InUse(f"dump {dump} is {manifest.state}: only a dump that is pending or running can be cancelled")
        return manifest

    async def lease(self, dump: str) -> str:
        """Take a lease and return its id. Raises UnknownDump or NotComplete."""
        await self._readable(dump)
        lease = await self._leases.take(dump)
        try:
            if await self._owners.is_deleted(dump):
                raise NotComplete(f"dump {dump} is being deleted")
            await self._readable(dump)
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

    async def lease_counts(self) -> Counter[str]:
        """Count the leases of each dump; downloads have some of their own."""
        return await self._leases.counts()

    async def delete(self, dump: str) -> None:
        """Delete a dump and its files.

        Raises UnknownDump, or InUse for a dump that is leased, already being deleted, or has not ended.
        """
        manifest = await self.get(dump)
        if not manifest.state.ended:
            raise InUse(f"dump {dump} is {manifest.state}: cancel it first")
        owner = self._owners.deletion(dump)
        try:
            if await owner.take() != owner.me:
                raise InUse(f"dump {dump} is being deleted")
            await self.get(dump)  # another replica may have deleted it meanwhile
            await self._require_no_lease(dump)
            await self._store.hide(dump)
            try:
                await self._require_no_lease(dump)  # one taken after `owner` expired, while this process was suspended
            except DatabusError:
                await self._store.restore(dump)
                raise
            await self._store.remove(dump)
        finally:
            with suppress(DatabusError):  # it expires
                await owner.release()

    async def _require_no_lease(self, dump: str) -> None:
        if await self._leases.is_leased(dump):
            metrics.LEASE_CONFLICTS.inc()
            raise InUse(f"dump {dump} is being read: it can be deleted once its leases have ended")

    async def _readable(self, dump: str) -> Manifest:
        manifest = await self.get(dump)
        if manifest.state is not State.COMPLETE:
            raise NotComplete(f"dump {dump} is {manifest.state}")
        return manifest

"""Take the requested dumps, the oldest first, one at a time in each replica.

While a replica takes a dump, it renews its lease of the ownership, publishes the progress, and looks whether it still
has the claim: whoever cancels a dump takes the claim away. An outage of Redis does not end a dump. A running dump
without an owner has lost it: the replica was killed or stopped. Any replica fails such a dump, or makes it pending
again if it is chunked.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from databus_core.cancellation import raise_if_cancelled
from databus_core.errors import DatabusError, KafkaUnavailable, RetryableError
from databus_core.leases.redis import RedisLease
from databus_core.log_events import LogEvent
from databus_core.logs import bound, get_logger, position_fields
from databus_core.manifest import Manifest, Mode, State
from databus_core.metrics import dumps as metrics
from databus_core.settings import Settings
from databus_dump_api import chunked, snapshot
from databus_dump_api.owners import Owners
from databus_dump_api.progress import Progress
from databus_dump_api.store import Claim, ClaimLost, DumpStore

log = get_logger(__name__)

#: seconds between two renewals of the ownership
_RENEW_SECONDS = 1.0
#: timeout of a renewal
_ATTEMPT_SECONDS = 2.0
#: seconds between two looks for dumps without an owner; an owner that has lost its lease renews it in between
_LOOK_SECONDS = 4.0
#: seconds between two looks for requests that other replicas have accepted
_POLL_SECONDS = 2.0
#: how often a chunked dump is begun without completing a chunk; it may need more memory than there is
_MOST_ATTEMPTS = 5
#: pause until a dump is cancelled again: a client that is disconnecting may swallow a cancellation
_CANCEL_SECONDS = 5.0


@dataclass(frozen=True)
class _Owned:
    """A dump that this replica owns and may write."""

    #: as of the claim
    manifest: Manifest
    claim: Claim
    lease: RedisLease


class Worker:
    """Takes dumps. Its coroutines run forever, and raise the errors of the storage and of `redis_errors`."""

    def __init__(self, settings: Settings, store: DumpStore, owners: Owners) -> None:
        self._settings = settings
        self._store = store
        self._owners = owners
        self._requested = asyncio.Event()
        #: why dumps failed whose manifests could not be written then
        self._reasons: dict[str, str] = {}

    def wake(self) -> None:
        """Report that a dump was requested."""
        self._requested.set()

    async def take_dumps(self) -> None:
        """Take requested dumps."""
        while True:
            self._requested.clear()
            if not await self._take_oldest():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_SECONDS):
                        await self._requested.wait()

    async def end_orphans(self) -> None:
        """Fail, or take again if they are chunked, running dumps that have no owner at two looks."""
        before: set[str] = set()
        while True:
            running = [each.id for each in await self._store.newest_first() if each.state is State.RUNNING]
            orphans = {dump for dump in running if not await self._owners.is_owned(dump)}
            for dump in orphans & before:
                async with self._owning(dump, State.RUNNING) as owned:
                    if owned:
                        await self._end_or_resume(owned)
            before = orphans
            await asyncio.sleep(_LOOK_SECONDS)

    async def _end_or_resume(self, owned: _Owned) -> None:
        manifest = owned.manifest
        if manifest.mode is not Mode.CHUNKED:
            stopped = "the dump-api that took it has stopped; request a new dump"
            await self._fail(owned, self._reasons.get(manifest.id, stopped))
        elif manifest.attempts >= _MOST_ATTEMPTS:
            text = f"{manifest.attempts} times, the dump-api that took it has stopped before a chunk was complete"
            await self._fail(owned, f"{text}: look into its logs, and request a new dump")
        else:
            with suppress(ClaimLost):  # it was cancelled
                await self._store.save(owned.claim, msgspec.structs.replace(manifest, state=State.PENDING))
                text = "the dump-api that took it has stopped; the dump goes on"
                log.info(LogEvent.DUMP_RESUMED, text, dump=manifest.id)
                self.wake()

    async def _take_oldest(self) -> bool:
        """Take the oldest pending dump that has no owner. False if there is none."""
        for pending in reversed(await self._store.newest_first()):
            if pending.state is State.PENDING:
                async with self._owning(pending.id, State.PENDING) as owned:
                    if owned:
                        with bound(dump=pending.id):
                            await self._take(owned)
                        return True
        return False

    @asynccontextmanager
    async def _owning(self, dump: str, state: State) -> AsyncIterator[_Owned | None]:
        """Own a dump that is in this state; None if that is not possible now."""
        lease, claim = self._owners.lease(dump), None
        try:
            owned = None
            if await lease.take() == lease.me:
                with suppress(ClaimLost):
                    claim, manifest = await self._store.claim(dump)
                    if manifest.state is state:
                        owned = _Owned(manifest, claim, lease)
            yield owned
        finally:
            if claim:
                await asyncio.to_thread(claim.release)
            with suppress(DatabusError):  # it expires
                await lease.release()

    async def _take(self, owned: _Owned) -> None:
        """Take one dump; it ends as complete or failed, unless it is cancelled."""
        attempts = owned.manifest.attempts + (owned.manifest.mode is Mode.CHUNKED)
        manifest = msgspec.structs.replace(owned.manifest, state=State.RUNNING, attempts=attempts)
        try:
            await self._store.save(owned.claim, manifest)
            log.info(LogEvent.DUMP_STARTED, "taking a dump", tables=len(manifest.tables))
            begun = time.monotonic()
            complete = await self._snapshot(owned, manifest)
            await self._store.complete(owned.claim, complete)
        except ClaimLost:
            raise_if_cancelled()
            _log_stopped()
        except (DatabusError, OSError) as error:
            raise_if_cancelled()
            await self._fail(owned, " ".join(str(error).split()))
        else:
            log.info(LogEvent.DUMP_COMPLETED, "the dump is complete", **position_fields(complete.position))
            metrics.ENDED.labels(State.COMPLETE).inc()
            metrics.SECONDS.observe(time.monotonic() - begun)

    async def _snapshot(self, owned: _Owned, manifest: Manifest) -> Manifest:
        """Write the dump's files while it is owned. Raises ClaimLost when it is not any more."""
        progress = Progress()
        take = chunked.take if manifest.mode is Mode.CHUNKED else snapshot.take
        taking = asyncio.create_task(take(self._settings, manifest, owned.claim, progress))
        holding = asyncio.create_task(self._hold(owned, progress))
        try:
            await asyncio.wait({taking, holding}, return_when=asyncio.FIRST_COMPLETED)
            if holding.done():
                holding.result()
                raise ClaimLost("another writer has it")
        finally:
            await _end(holding)
            await _end(taking)
        if taking.cancelled():  # aiokafka does that if a connection is closed while it is being opened
            raise KafkaUnavailable("Kafka closed a connection; request a new dump")
        return taking.result()

    async def _hold(self, owned: _Owned, progress: Progress) -> None:
        """Renew the ownership and publish the progress, until the claim or the ownership is lost."""
        while await _is_held(owned.claim):
            size = await asyncio.to_thread(owned.claim.size)
            # While Redis is unavailable, nobody else can become the owner.
            with suppress(RetryableError, TimeoutError):
                async with asyncio.timeout(_ATTEMPT_SECONDS):
                    if await owned.lease.take() != owned.lease.me:
                        return
                    await self._owners.show(owned.manifest.id, progress.shown(size))
            await asyncio.sleep(_RENEW_SECONDS)

    async def _fail(self, owned: _Owned, reason: str) -> None:
        self._reasons[owned.manifest.id] = reason
        try:
            await self._store.end(owned.claim, owned.manifest, State.FAILED, reason)
        except ClaimLost:  # also if the reason is only that its files are gone
            _log_stopped()
        else:
            del self._reasons[owned.manifest.id]
            log.error(LogEvent.DUMP_FAILED, f"the dump failed: {reason}", dump=owned.manifest.id)
            metrics.ENDED.labels(State.FAILED).inc()


def _log_stopped() -> None:
    log.info(LogEvent.DUMP_STOPPED, "the dump was cancelled, or ended by another replica")


async def _is_held(claim: Claim) -> bool:
    """Return whether a claim is held, as far as is known: a writer that has lost it changes nothing."""
    with suppress(RetryableError):
        return await asyncio.to_thread(lambda: claim.held)
    return True


async def _end(task: "asyncio.Task[Any]") -> None:
    """Cancel a task until it has ended."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=_CANCEL_SECONDS)

"""What dumps and leases there are, as metrics."""

import asyncio
from collections.abc import Sequence

from databus_core.manifest import Manifest, State
from databus_core.metrics import dumps as metrics
from databus_dump_api.dumps import DumpManager
from databus_dump_api.leases import Leases

#: seconds between two looks
_PAUSE_SECONDS = 30.0


async def show(dumps: DumpManager, leases: Leases) -> None:
    """Look and show, forever. Raises the errors of the storage and of `redis_errors`."""
    while True:
        set_metrics(await dumps.newest_first(), (await leases.counts()).total())
        await asyncio.sleep(_PAUSE_SECONDS)


def set_metrics(newest_first: Sequence[Manifest], leases: int) -> None:
    """Show these dumps and this number of leases."""
    complete = [manifest for manifest in newest_first if manifest.state is State.COMPLETE and manifest.completed]
    newest = max(complete, key=lambda manifest: manifest.completed or manifest.created, default=None)
    metrics.NEWEST_TIME.set(newest.completed.timestamp() if newest and newest.completed else 0)
    metrics.NEWEST_BYTES.set(_bytes(newest) if newest else 0)
    metrics.STORED_BYTES.set(sum(map(_bytes, complete)))
    metrics.LEASES.set(leases)


def _bytes(manifest: Manifest) -> int:
    return sum(file.bytes for file in manifest.files)

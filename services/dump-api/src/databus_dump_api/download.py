"""A file download, under a lease that is renewed while bytes are sent."""

import asyncio
from pathlib import Path
from time import monotonic

from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from databus_core.errors import DatabusError
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.manifest import DumpFile, FileFormat
from databus_core.metrics import DUMP_DOWNLOADS
from databus_dump_api.dumps import DumpManager

log = get_logger(__name__)

_PARQUET = (FileFormat.PARQUET, FileFormat.PARQUET_TYPED)
MEDIA_TYPES = {
    each: "application/vnd.apache.parquet" if each in _PARQUET else "application/zstd" for each in FileFormat
}


class Download(FileResponse):
    """Serves one file, or a range of it, and releases its lease when the transfer ends or breaks."""

    #: with twice as much, 200 downloads make a turn of the event loop twice as long, and are not faster
    chunk_size = 2**15

    def __init__(self, dumps: DumpManager, dump: str, path: Path, file: DumpFile, lease_ttl: float) -> None:
        media_type, headers = MEDIA_TYPES[file.format], {"ETag": f'"{file.sha256}"'}
        super().__init__(path, headers=headers, media_type=media_type, filename=file.name)
        self._dumps = dumps
        self._dump = dump
        self._renew_after = lease_ttl / 3
        self._renewal_failed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a lease, send the file, release the lease. HEAD needs no lease."""
        if scope["method"] == "HEAD":
            await super().__call__(scope, receive, send)
            return
        lease = await self._dumps.lease(self._dump)
        renewed_at = monotonic()

        async def renewing_send(message: Message) -> None:
            nonlocal renewed_at
            await send(message)
            if monotonic() - renewed_at > self._renew_after:
                renewed_at = monotonic()
                await self._renew(lease)

        try:
            await super().__call__(scope, receive, renewing_send)
            DUMP_DOWNLOADS.inc()
        finally:
            await asyncio.shield(self._release(lease))

    async def _renew(self, lease: str) -> None:
        """Renew the lease. A failure does not end the transfer: the file is open, so it can be read even if deleted."""
        try:
            await self._dumps.renew(self._dump, lease)
        except DatabusError as error:
            if not self._renewal_failed:
                log.warning(LogEvent.LEASE_NOT_RENEWED, f"the lease is not renewed: {error}", dump=self._dump)
            self._renewal_failed = True

    async def _release(self, lease: str) -> None:
        try:
            await self._dumps.release(self._dump, lease)
        except DatabusError as error:
            log.warning(LogEvent.LEASE_NOT_RELEASED, f"the lease is not released: {error}", dump=self._dump)

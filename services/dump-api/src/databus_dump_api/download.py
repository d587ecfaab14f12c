"""A file on its way to a client, under a lease that is renewed while bytes flow."""

import asyncio
import logging
from pathlib import Path
from time import monotonic

from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from databus.errors import DatabusError
from databus.manifest import DumpFile
from databus.metrics import DUMP_DOWNLOADS
from databus_dump_api.dumps import Dumps

log = logging.getLogger("databus")


class Download(FileResponse):
    """Serves one file, whole or a range of it, and ends its lease however the transfer ends."""

    def __init__(self, dumps: Dumps, dump: str, path: Path, file: DumpFile, lease_ttl: float) -> None:
        super().__init__(path, headers={"ETag": f'"{file.sha256}"'}, media_type="application/zstd", filename=file.name)
        self._dumps = dumps
        self._dump = dump
        self._pause = lease_ttl / 3

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the lease, send the file, give the lease back."""
        lease = await self._dumps.lease(self._dump)
        renewed = monotonic()

        async def renewing_send(message: Message) -> None:
            nonlocal renewed
            await send(message)
            if monotonic() - renewed > self._pause:
                renewed = monotonic()
                await self._renew(lease)

        try:
            await super().__call__(scope, receive, renewing_send)
            DUMP_DOWNLOADS.inc()
        finally:
            await asyncio.shield(self._release(lease))

    async def _renew(self, lease: str) -> None:
        """Go on without a lease if need be: the file is open, so its bytes stay whatever happens to the dump."""
        try:
            await self._dumps.renew(self._dump, lease)
        except DatabusError as error:
            log.warning("lease of a download of dump %s is not renewed: %s", self._dump, error)

    async def _release(self, lease: str) -> None:
        try:
            await self._dumps.release(self._dump, lease)
        except DatabusError as error:
            log.warning("lease of a download of dump %s is left to expire: %s", self._dump, error)

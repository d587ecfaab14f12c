"""A file download, under a lease that is renewed while bytes are sent."""

import asyncio
import re
from http import HTTPStatus
from time import monotonic

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from databus_core.errors import DatabusError
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.manifest import DumpFile, FileFormat
from databus_core.metrics import dumps as metrics
from databus_dump_api.dumps import DumpManager

log = get_logger(__name__)

_PARQUET = (FileFormat.PARQUET, FileFormat.PARQUET_TYPED)
MEDIA_TYPES = {
    each: "application/vnd.apache.parquet" if each in _PARQUET else "application/zstd" for each in FileFormat
}
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class Download(Response):
    """Serves one file, or a range of it, and releases its lease when the transfer ends or breaks."""

    def __init__(self, dumps: DumpManager, dump: str, file: DumpFile, lease_ttl: float) -> None:
        headers = {
            "Accept-Ranges": "bytes",
            "Content-Disposition": f'attachment; filename="{file.name}"',
            "ETag": f'"{file.sha256}"',
        }
        super().__init__(headers=headers, media_type=MEDIA_TYPES[file.format])
        self._dumps = dumps
        self._dump = dump
        self._file = file
        self._renew_after = lease_ttl / 3
        self._renewal_failed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a lease, send the file, release the lease. HEAD needs no lease."""
        size = self._file.bytes
        start, stop = requested_range(Headers(scope=scope), size, self.headers["ETag"]) or (0, size)
        self.headers["Content-Length"] = str(stop - start)
        if (start, stop) != (0, size):
            self.status_code = HTTPStatus.PARTIAL_CONTENT
            self.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        if scope["method"] == "HEAD":
            await self._begin(send)
            await send({"type": "http.response.body"})
            return
        sending = asyncio.create_task(self._send_leased(send, start, stop))
        leaving = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            leaving.cancel()
            sending.cancel()
            await asyncio.wait({sending, leaving})

    async def _send_leased(self, send: Send, start: int, stop: int) -> None:
        lease = await self._dumps.lease(self._dump)
        try:
            async with self._dumps.reading(self._dump, self._file, start, stop) as chunks:
                await self._begin(send)
                renewed_at = monotonic()
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    if monotonic() - renewed_at > self._renew_after:
                        renewed_at = monotonic()
                        await self._renew(lease)
                await send({"type": "http.response.body"})
            metrics.DOWNLOADS.inc()
        finally:
            await asyncio.shield(self._release(lease))

    async def _begin(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})

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


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def requested_range(headers: Headers, size: int, etag: str) -> tuple[int, int] | None:
    """Return the first byte that is requested, and the one behind the last; None if the whole file is.

    Several ranges at once, ranges in another unit, and the range of another version of a file are ignored, as RFC 9110
    permits. Raises HTTPException for a range that begins behind the end.
    """
    found = _RANGE.fullmatch(headers.get("Range", "").strip())
    if not found or found[0] == "bytes=-" or headers.get("If-Range", etag) != etag:
        return None
    first, last = found.groups()
    if not first:
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    if start >= size:
        headers_of_range = {"Content-Range": f"bytes */{size}"}
        raise HTTPException(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "the file has no such bytes", headers_of_range)
    return start, stop

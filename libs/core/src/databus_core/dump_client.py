"""The client of dump-api: find or request a dump, lease it, download its files."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from http import HTTPStatus
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from databus_core import durable
from databus_core.errors import DumpApiUnavailable, DumpRefused, DumpUnusable
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger
from databus_core.manifest import DumpFile, DumpLease, DumpList, Manifest, Mode, State
from databus_core.pipeline_description import PipelineDescription
from databus_core.settings import Dumps

log = get_logger(__name__)

_CHUNK = 2**20
#: how long dump-api may be away while a dump is waited for
_RESTART_SECONDS = 60.0
#: dumps that are requested, one after the other, if they fail
_ATTEMPTS = 3

_T = TypeVar("_T")


@dataclass
class _Lease:
    """A lease that is being held."""

    path: str
    #: seconds between renewals
    renew_after: float


class DumpApi:
    """A connection to dump-api. Every method may raise DumpApiUnavailable or DumpUnusable."""

    def __init__(self, url: str, poll: float = 1.0, *, api_key: str = "") -> None:
        """Connect on first use. `poll` is the pause in seconds between two checks of a dump that is being taken."""
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.AsyncClient(base_url=url, timeout=30, headers=headers)
        self._url = _without_login(httpx.URL(url))
        self._poll = poll

    @classmethod
    def of(cls, section: Dumps) -> Self:
        """Connect as the configuration says."""
        return cls(section.url, api_key=section.api_key.get_secret_value())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def pipeline(self) -> PipelineDescription:
        """Read how the pipeline publishes its changes."""
        return self._read(await self._request("GET", "/v1/pipeline"), PipelineDescription)

    async def dumps(self) -> list[Manifest]:
        """List all dumps, the newest first."""
        answer = await self._request("GET", "/v1/dumps")
        return self._read(answer, DumpList).dumps

    async def dump(self, dump: str) -> Manifest:
        """Read a dump's manifest."""
        return self._read(await self._request("GET", f"/v1/dumps/{dump}"), Manifest)

    async def request(self, tables: Sequence[str] | None, mode: Mode = Mode.VIEW) -> Manifest:
        """Request a dump of the tables that match `schema.table` patterns; None: of all."""
        body: dict[str, object] = {"tables": tables} if tables else {}
        if mode is not Mode.VIEW:  # a dump API of an earlier version has no modes
            body["mode"] = mode
        return self._read(await self._request("POST", "/v1/dumps", json=body), Manifest)

    async def wait(self, manifest: Manifest, show: Callable[[Manifest], object] = lambda manifest: None) -> Manifest:
        """Wait until a dump has ended, and return its manifest. `show` is called with each one on the way.

        Raises DumpApiUnavailable if dump-api is away for longer than a restart takes.
        """
        show(manifest)
        heard = monotonic()
        while not manifest.state.ended:
            await asyncio.sleep(self._poll)
            try:
                show(manifest := await self.dump(manifest.id))
                heard = monotonic()
            except DumpApiUnavailable:
                if monotonic() > heard + _RESTART_SECONDS:
                    raise
        return manifest

    async def take(self, tables: list[str]) -> Manifest:
        """Request a dump of the tables that match `schema.table` patterns, and wait until it is complete.

        If it fails, another one is requested: a table may have been altered meanwhile, or dump-api restarted.
        """
        for _ in range(_ATTEMPTS):
            manifest = await self.request(tables)
            log.info(LogEvent.DUMP_REQUESTED, "waiting for dump-api to take the dump", dump=manifest.id)
            manifest = await self.wait(manifest)
            if manifest.state is not State.FAILED:
                break
        if manifest.state is not State.COMPLETE:
            raise DumpUnusable(f"dump {manifest.id} is {manifest.state}: {manifest.error or 'request a new dump'}")
        return manifest

    async def cancel(self, dump: str) -> Manifest:
        """Cancel a dump that has not ended; it ends soon after."""
        return self._read(await self._request("POST", f"/v1/dumps/{dump}/cancel"), Manifest)

    async def delete(self, dump: str) -> None:
        """Delete a dump and its files."""
        await self._request("DELETE", f"/v1/dumps/{dump}")

    @asynccontextmanager
    async def leased(self, dump: str) -> AsyncIterator[None]:
        """Hold a lease of the dump, so that dump-api does not delete it during the block."""
        lease = await self._take_lease(dump)
        renewing = asyncio.create_task(self._renew(dump, lease))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})
            # A lease that cannot be released expires by itself.
            with suppress(DumpApiUnavailable, DumpUnusable):
                await self._request("DELETE", lease.path)

    async def download(
        self, dump: str, file: DumpFile, path: Path, advance: Callable[[int], object] = lambda size: None
    ) -> None:
        """Download a file, or the rest of it, and verify its SHA-256.

        What was there and proves to be damaged is downloaded again. A file that arrives damaged is removed. `advance`
        is called with the size of each piece; the first one is what was there.
        """
        size = await asyncio.to_thread(_size, path)
        advance(size)
        if size < file.bytes:
            await self._download_from(size, f"/v1/dumps/{dump}/files/{quote(file.name)}", path, advance)
        if await asyncio.to_thread(_sha256, path) == file.sha256:
            return
        await asyncio.to_thread(path.unlink)
        if not size:
            raise DumpUnusable(f"dump {dump}: {file.name} differs from its manifest (SHA-256): request a new dump")
        advance(-max(size, file.bytes))
        await self.download(dump, file, path, advance)

    async def _download_from(self, offset: int, url: str, path: Path, advance: Callable[[int], object]) -> None:
        """Append the bytes from this offset to a file, or replace the file if the server sends all bytes."""
        try:
            async with self._http.stream("GET", url, headers={"Range": f"bytes={offset}-"}) as answer:
                await self._require_success(answer)
                with path.open("ab" if answer.status_code == HTTPStatus.PARTIAL_CONTENT else "wb") as part:
                    async for chunk in answer.aiter_raw(_CHUNK):
                        await asyncio.to_thread(part.write, chunk)
                        advance(len(chunk))
                    await asyncio.to_thread(durable.close, part)
            await asyncio.to_thread(durable.sync_folder, path.parent)
        except httpx.TransportError as error:
            raise self._unavailable(error) from error

    async def _take_lease(self, dump: str) -> "_Lease":
        lease = self._read(await self._request("POST", f"/v1/dumps/{dump}/leases"), DumpLease)
        return _Lease(f"/v1/dumps/{dump}/leases/{lease.lease}", lease.expires_in / 3)

    async def _renew(self, dump: str, lease: "_Lease") -> None:
        """Renew a lease forever, and replace it if it has expired. Ends when dump-api refuses a new one."""
        failed = False
        while True:
            await asyncio.sleep(lease.renew_after)
            try:
                await self._request("PUT", lease.path)
            except DumpApiUnavailable as error:
                if not failed:
                    text = f"the lease of the dump could not be renewed: {error}; retrying"
                    log.warning(LogEvent.LEASE_NOT_RENEWED, text, dump=dump)
                failed = True
            except DumpUnusable as error:
                if not await self._replace(dump, lease, error):
                    return

    async def _replace(self, dump: str, lease: "_Lease", refusal: DumpUnusable) -> bool:
        """Take a new lease in place of one that dump-api does not know. False if dump-api refuses that, too."""
        try:
            lease.path = (await self._take_lease(dump)).path
        except DumpUnusable as error:
            text = f"the lease is lost, and with it perhaps the dump: {error}"
            log.warning(LogEvent.LEASE_NOT_RENEWED, text, dump=dump)
            return False
        except DumpApiUnavailable:
            return True  # the next attempt to renew it fails again
        log.warning(LogEvent.LEASE_NOT_RENEWED, f"a new lease of the dump was taken: {refusal}", dump=dump)
        return True

    async def _request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            answer = await self._http.request(method, path, **arguments)
        except httpx.TransportError as error:
            raise self._unavailable(error) from error
        await self._require_success(answer)
        return answer

    def _read(self, answer: httpx.Response, kind: type[_T]) -> _T:
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._unavailable(error) from error

    async def _require_success(self, answer: httpx.Response) -> None:
        if answer.is_success:
            return
        url = _without_login(answer.request.url)
        detail = f"{answer.request.method} {url}: {answer.status_code}: {_detail(await answer.aread())}"
        if answer.is_server_error or answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            raise DumpApiUnavailable(f"dump-api is unavailable: {detail}")
        refusal = DumpRefused if answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY else DumpUnusable
        raise refusal(f"dump-api refused the request: {detail}")

    def _unavailable(self, error: Exception) -> DumpApiUnavailable:
        return DumpApiUnavailable(f"dump-api {self._url}: {str(error) or type(error).__name__} (check dumps.url)")


def _without_login(url: httpx.URL) -> httpx.URL:
    return url.copy_with(userinfo=b"")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _detail(body: bytes) -> str:
    """Read the detail of an RFC 9457 problem document."""
    try:
        return str(msgspec.json.decode(body)["detail"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return "no detail"

"""A client of dump-api: find or request a dump, lease it, download its files."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import file_digest
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from databus.errors import DumpApiUnavailable, DumpUnusable
from databus.manifest import DumpFile, DumpLease, DumpList, Manifest, State

log = logging.getLogger("databus")

_CHUNK = 2**20

_T = TypeVar("_T")


class DumpApi:
    """A client of dump-api. Every method raises DumpApiUnavailable or DumpUnusable."""

    def __init__(self, url: str, poll: float = 1.0) -> None:
        self._http = httpx.AsyncClient(base_url=url, timeout=30)
        self._url = url
        self._poll = poll

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def dumps(self) -> list[Manifest]:
        """List all dumps, the newest first."""
        answer = await self._request("GET", "/v1/dumps")
        return self._read(answer, DumpList).dumps

    async def dump(self, dump: str) -> Manifest:
        """Show a dump."""
        return self._read(await self._request("GET", f"/v1/dumps/{dump}"), Manifest)

    async def take(self, tables: list[str]) -> Manifest:
        """Request a dump and wait until it is complete."""
        answer = await self._request("POST", "/v1/dumps", json={"tables": tables})
        manifest = self._read(answer, Manifest)
        log.info("requested dump %s", manifest.id)
        while manifest.state in (State.PENDING, State.RUNNING):
            await asyncio.sleep(self._poll)
            manifest = await self.dump(manifest.id)
        if manifest.state is not State.COMPLETE:
            raise DumpUnusable(f"dump {manifest.id} is {manifest.state}: {manifest.error}")
        return manifest

    @asynccontextmanager
    async def leased(self, dump: str) -> AsyncIterator[None]:
        """Keep a dump from being deleted meanwhile."""
        answer = await self._request("POST", f"/v1/dumps/{dump}/leases")
        lease = self._read(answer, DumpLease)
        path = f"/v1/dumps/{dump}/leases/{lease.lease}"
        renewing = asyncio.create_task(self._renew(path, lease.expires_in / 3))
        try:
            yield
        finally:
            renewing.cancel()
            # What cannot be given back expires by itself.
            with suppress(asyncio.CancelledError, DumpApiUnavailable, DumpUnusable):
                await renewing
            with suppress(DumpApiUnavailable, DumpUnusable):
                await self._request("DELETE", path)

    async def download(self, dump: str, file: DumpFile, path: Path) -> None:
        """Download a file, or what is missing of it, and verify it."""
        if (have := await asyncio.to_thread(_size, path)) < file.bytes:
            await self._append(f"/v1/dumps/{dump}/files/{quote(file.name)}", path, have)
        if await asyncio.to_thread(_sha256, path) != file.sha256:
            await asyncio.to_thread(path.unlink)
            raise DumpUnusable(f"dump {dump}: {file.name} is not what its manifest says; request a new dump")

    async def _append(self, url: str, path: Path, have: int) -> None:
        try:
            async with self._http.stream("GET", url, headers={"Range": f"bytes={have}-"}) as answer:
                await self._require_success(answer)
                with path.open("ab" if answer.status_code == HTTPStatus.PARTIAL_CONTENT else "wb") as part:
                    async for chunk in answer.aiter_raw(_CHUNK):
                        await asyncio.to_thread(part.write, chunk)
        except httpx.TransportError as error:
            raise self._unavailable(error) from error

    async def _renew(self, path: str, pause: float) -> None:
        while True:
            await asyncio.sleep(pause)
            try:
                await self._request("PUT", path)
            except DumpApiUnavailable as error:
                log.warning("the lease could not be renewed: %s", error)

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
        except msgspec.DecodeError as error:
            raise self._unavailable(error) from error

    async def _require_success(self, answer: httpx.Response) -> None:
        if answer.is_success:
            return
        detail = f"{answer.request.method} {answer.request.url}: {answer.status_code}: {_detail(await answer.aread())}"
        if answer.is_server_error:
            raise DumpApiUnavailable(f"dump-api does not serve: {detail}")
        raise DumpUnusable(f"dump-api refuses: {detail}")

    def _unavailable(self, error: Exception) -> DumpApiUnavailable:
        return DumpApiUnavailable(f"dump-api {self._url}: {error or type(error).__name__} (check dumps.url)")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _detail(body: bytes) -> str:
    """Read an RFC 9457 problem document's detail."""
    try:
        return str(msgspec.json.decode(body)["detail"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return "no detail"

"""Where dumps are: a manifest and the files that it lists, in a folder (`folder_store`) or in S3 (`bucket_store`).

Several processes may use the same storage. Nothing is kept in memory but manifests that have not been replaced since
they were read. A manifest is replaced as a whole, and is durable before a client can see the new state. A dump that has
not ended is written only by the holder of its claim: whoever has lost its claim changes nothing any more, at whatever
step it was suspended.
"""

import asyncio
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from databus_core.errors import RetryableError
from databus_core.manifest import DumpFile, Manifest, PipelineMoment, State

#: name of a manifest in a folder
MANIFEST = "manifest.json"


class ClaimLost(RetryableError):
    """Another claim of the dump was made, or the dump was deleted."""


class Output(Protocol):
    """Where a dump's files are written. All methods block, and raise ClaimLost and the errors of the storage."""

    #: folder of this machine for the files that are being written
    folder: Path

    def publish(self, file: DumpFile) -> DumpFile:
        """Store a file of `folder` durably where clients look for it; return it with the name that it has there."""

    def local(self, file: DumpFile) -> AbstractContextManager[Path]:
        """Give a published file as a file of this machine."""


class Claim(Output, Protocol):
    """The right to write a dump, until another claim of it is made."""

    @property
    def held(self) -> bool:
        """Whether this is still the claim of the dump."""

    def size(self) -> int:
        """Return the bytes of all files, also of those that are being written."""

    def save(self, manifest: Manifest) -> None:
        """Replace the manifest."""

    def finish(self, manifest: Manifest) -> None:
        """Replace the manifest by the last one, remove the files that it does not list, and release the claim."""

    def release(self) -> None:
        """Remove what only this claim needs. It may have been lost. Raises nothing."""


class DumpStore(ABC):
    """The manifests and files of all dumps. Methods that are not coroutines block.

    Every method may raise StorageUnavailable (of a folder) or ObjectStoreUnavailable (of S3).
    """

    @abstractmethod
    def open(self) -> None:
        """Read all manifests and clean up after a crash. Called once, before anything else.

        A full volume is no error: its dumps can be read and deleted. Raises InvalidSettings if the folder is not
        writable, FatalError for a manifest that cannot be decoded.
        """

    @abstractmethod
    def require_space(self) -> None:
        """Raise StorageFull unless there is space for a new dump's manifest, and InvalidSettings if it is read-only."""

    @abstractmethod
    def free_bytes(self) -> float:
        """Return the number of free bytes; infinite for S3."""

    @abstractmethod
    def reading(
        self, dump: str, file: DumpFile, start: int, stop: int
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a file of a complete dump, and give its bytes from `start` to before `stop`, in chunks.

        A file that is open can be read to its end, even if the dump is deleted meanwhile.
        """

    async def get(self, dump: str) -> Manifest | None:
        """Return a dump's manifest; None if there is no such dump."""
        return await asyncio.to_thread(self._get, dump)

    async def newest_first(self) -> list[Manifest]:
        """Return all manifests, the newest first."""
        found = await asyncio.to_thread(self._all)
        return sorted(found, key=lambda manifest: (manifest.created, manifest.id), reverse=True)

    def new_id(self, created: datetime) -> str:
        """Make an id that sorts by time of creation."""
        return f"{created.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"

    async def add(self, manifest: Manifest) -> None:
        """Make a new dump durable, then visible. Raises StorageFull."""
        await asyncio.to_thread(self._add, manifest)

    async def pass_by(self, dump: str, moment: PipelineMoment) -> None:
        """Record when the pipeline had passed a complete dump, unless it was deleted. Raises StorageFull."""
        await asyncio.to_thread(self._pass_by, dump, moment)

    async def claim(self, dump: str) -> tuple[Claim, Manifest]:
        """Claim a dump that has not ended. Return the claim, and the manifest as of then.

        Raises ClaimLost if there is no such dump any more, StorageFull.
        """
        return await asyncio.to_thread(self._claim, dump)

    async def save(self, claim: Claim, manifest: Manifest) -> None:
        """Replace the manifest of a dump that has not ended. Raises ClaimLost, StorageFull."""
        await asyncio.to_thread(claim.save, manifest)

    async def complete(self, claim: Claim, manifest: Manifest) -> None:
        """Make a dump's complete manifest visible, and release the claim. Raises ClaimLost, StorageFull."""
        await asyncio.to_thread(claim.finish, manifest)

    async def end(self, claim: Claim, manifest: Manifest, state: State, error: str | None) -> Manifest:
        """Remove a dump's files, record why it has no result, and release the claim. Raises ClaimLost, StorageFull."""
        ended = msgspec.structs.replace(manifest, state=state, completed=datetime.now(UTC), error=error, files=())
        await asyncio.to_thread(claim.finish, ended)
        return ended

    async def hide(self, dump: str) -> None:
        """Take a dump from its readers, before `remove`. Without that, it is removed when a replica starts.

        No crash and no `pass_by` can bring it back.
        """
        await asyncio.to_thread(self._hide, dump)

    async def restore(self, dump: str) -> None:
        """Give a hidden dump back to its readers."""
        await asyncio.to_thread(self._restore, dump)

    async def remove(self, dump: str) -> None:
        """Remove a hidden dump and its files."""
        await asyncio.to_thread(self._remove, dump)

    @abstractmethod
    def _get(self, dump: str) -> Manifest | None: ...
    @abstractmethod
    def _all(self) -> list[Manifest]: ...
    @abstractmethod
    def _add(self, manifest: Manifest) -> None: ...
    @abstractmethod
    def _pass_by(self, dump: str, moment: PipelineMoment) -> None: ...
    @abstractmethod
    def _claim(self, dump: str) -> tuple[Claim, Manifest]: ...
    @abstractmethod
    def _hide(self, dump: str) -> None: ...
    @abstractmethod
    def _restore(self, dump: str) -> None: ...
    @abstractmethod
    def _remove(self, dump: str) -> None: ...


def part_bytes(folder: Path) -> int:
    """Return the bytes of the part files in a folder of this machine, which may be renamed or removed meanwhile."""
    size = 0
    with suppress(FileNotFoundError), os.scandir(folder) as files:
        for file in files:
            with suppress(FileNotFoundError):
                if file.is_file() and file.name != MANIFEST:
                    size += file.stat().st_size
    return size

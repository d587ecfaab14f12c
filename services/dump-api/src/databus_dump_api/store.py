"""Dumps on disk: the folder `<root>/<id>` has `manifest.json` and the part files that it lists.

Several processes may use the same root. Nothing is kept in memory but manifests that have not been replaced since they
were read. A manifest is replaced atomically, and is on disk before a client can see the new state. A dump that has not
ended is written only by the holder of its claim (`claims`). A deletion renames the folder first, which needs no free
space; such folders, and those without a manifest, are removed when dump-api starts.
"""

import asyncio
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from databus_core import durable
from databus_core.errors import FatalError, InvalidSettings
from databus_core.manifest import Manifest, PipelineMoment, State
from databus_dump_api.claims import MANIFEST, Claim, ClaimLost
from databus_dump_api.problems import StorageFull, StorageUnavailable

_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
_NEW, _GONE = ".new-", ".gone-"
#: bytes that must be free when a dump is requested
_RESERVE = 2**20
#: age at which what is left of a new dump or a deletion is certainly not in use any more
_LEFT_SECONDS = 3600


class DumpStore:
    """The manifests and folders of all dumps. Methods that are not coroutines block."""

    def __init__(self, root: Path) -> None:
        self._root = root
        #: of each manifest: the file that it was read from, by inode, time and size
        self._read: dict[str, tuple[tuple[int, ...], Manifest]] = {}

    def open(self) -> None:
        """Read all manifests and clean up after a crash. Called once, before anything else.

        A full volume is no error: its dumps can be read and deleted. Raises InvalidSettings if the folder is not
        writable, FatalError for a manifest that cannot be decoded, StorageUnavailable if the clean-up fails.
        """
        with suppress(StorageFull):
            self.require_space()
        with storage_errors(self._root):
            for folder in self._root.iterdir():
                self._clean(folder)
        self._all()

    def require_space(self) -> None:
        """Raise StorageFull unless 1 MiB is free, and InvalidSettings if files cannot be written."""
        try:
            with storage_errors(self._root, _RESERVE):
                durable.make_folder(self._root)
                with TemporaryFile(dir=self._root) as probe:
                    os.posix_fallocate(probe.fileno(), 0, _RESERVE)  # unlike a look at the free bytes, obeys quotas
        except StorageUnavailable as error:
            raise InvalidSettings(f"dumps.storage: {error}") from error

    def free_bytes(self) -> int:
        """Return the number of free bytes on the volume."""
        return _free(self._root)

    async def get(self, dump: str) -> Manifest | None:
        """Return a dump's manifest; None if there is no such dump."""
        return await asyncio.to_thread(self._get, dump)

    async def newest_first(self) -> list[Manifest]:
        """Return all manifests, the newest first."""
        return await asyncio.to_thread(self._all)

    def folder(self, dump: str) -> Path:
        """Return the folder of a dump's files."""
        return self._root / dump

    def new_id(self, created: datetime) -> str:
        """Make an id that sorts by time of creation."""
        return f"{created.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"

    async def add(self, manifest: Manifest) -> None:
        """Make a new dump durable, then visible. Raises StorageFull or StorageUnavailable."""
        await asyncio.to_thread(self._add, manifest)

    async def pass_by(self, dump: str, moment: PipelineMoment) -> None:
        """Record when the pipeline had passed a complete dump, unless it was deleted. Raises as `add`."""
        manifest = await self.get(dump)
        if manifest and manifest.passed is None:
            with storage_errors(self.folder(dump)), suppress(FileNotFoundError):
                passed = msgspec.structs.replace(manifest, passed=moment)
                await asyncio.to_thread(_write, self.folder(dump), passed)

    async def claim(self, dump: str) -> tuple[Claim, Manifest]:
        """Claim a dump that has not ended. Return the claim, and the manifest as of then.

        Raises ClaimLost if there is no such dump any more, StorageFull or StorageUnavailable.
        """
        return await asyncio.to_thread(self._claim, dump)

    async def save(self, claim: Claim, manifest: Manifest) -> None:
        """Replace the manifest of a dump that has not ended. Raises ClaimLost, StorageFull or StorageUnavailable."""
        with storage_errors(self.folder(manifest.id)):
            await asyncio.to_thread(claim.save, manifest)

    async def end(self, claim: Claim, manifest: Manifest, state: State, error: str | None) -> Manifest:
        """Remove a dump's files, record why it has no result, and release the claim. Raises as `save`."""
        ended = msgspec.structs.replace(manifest, state=state, completed=datetime.now(UTC), error=error)

        def write() -> None:
            with storage_errors(self.folder(manifest.id)):
                claim.remove_files()
                claim.save(ended)
                claim.release()

        await asyncio.to_thread(write)
        return ended

    async def complete(self, claim: Claim, manifest: Manifest) -> None:
        """Make a dump's files and its complete manifest visible, and release the claim. Raises as `save`."""

        def write() -> None:
            with storage_errors(self.folder(manifest.id)):
                claim.publish(manifest.files)
                claim.save(manifest)
                claim.release()

        await asyncio.to_thread(write)

    async def hide(self, dump: str) -> None:
        """Take a dump from its readers, before `remove`. Without that, it is removed when a replica starts.

        Under its new name no crash and no `pass_by` can bring it back. Raises StorageUnavailable.
        """

        def hide() -> None:
            with suppress(FileNotFoundError):  # another replica has just removed it
                self.folder(dump).rename(self._hidden(dump))
            durable.sync_folder(self._root)

        with storage_errors(self.folder(dump)):
            await asyncio.to_thread(hide)

    async def restore(self, dump: str) -> None:
        """Give a hidden dump back to its readers. Raises StorageUnavailable."""

        def restore() -> None:
            self._hidden(dump).rename(self.folder(dump))
            durable.sync_folder(self._root)

        with storage_errors(self.folder(dump)):
            await asyncio.to_thread(restore)

    async def remove(self, dump: str) -> None:
        """Remove the files of a hidden dump. Raises StorageUnavailable."""

        def remove() -> None:
            with suppress(FileNotFoundError):  # a replica that starts may remove it, too
                shutil.rmtree(self._hidden(dump))

        with storage_errors(self.folder(dump)):
            await asyncio.to_thread(remove)

    def _hidden(self, dump: str) -> Path:
        return self._root / f"{_GONE}{dump}"

    def _get(self, dump: str) -> Manifest | None:
        if not re.fullmatch(r"[\w-]{1,64}", dump, re.ASCII):  # it must not lead to another folder
            return None
        path = self.folder(dump) / MANIFEST
        with storage_errors(path):
            try:
                status = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                self._read.pop(dump, None)
                return None
            version = (status.st_ino, status.st_mtime_ns, status.st_size)
            if (known := self._read.get(dump)) and known[0] == version:
                return known[1]
            try:
                manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
            except FileNotFoundError:
                return None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise FatalError(f"{path}: not a manifest ({error}): restore it, or remove the folder") from error
        if manifest.id != dump:  # somebody has copied a dump
            return None
        self._read[dump] = version, manifest
        return manifest

    def _all(self) -> list[Manifest]:
        with storage_errors(self._root):
            found = [manifest for path in self._root.iterdir() if (manifest := self._get(path.name))]
        for gone in self._read.keys() - {manifest.id for manifest in found}:
            self._read.pop(gone, None)
        return sorted(found, key=lambda manifest: (manifest.created, manifest.id), reverse=True)

    def _claim(self, dump: str) -> tuple[Claim, Manifest]:
        with storage_errors(self.folder(dump)):
            claim = Claim(self.folder(dump))
            manifest = self._get(dump)
            if manifest is None or manifest.state.ended:
                claim.release()
                raise ClaimLost(f"dump {dump} has ended")
        return claim, manifest

    def _add(self, manifest: Manifest) -> None:
        """Write the manifest into a folder that is renamed afterwards: no other process finds a dump without one."""
        folder, draft = self.folder(manifest.id), self._root / f"{_NEW}{manifest.id}"
        with storage_errors(folder / MANIFEST, _RESERVE):
            try:
                durable.make_folder(draft)
                _write(draft, manifest)
                draft.rename(folder)
                durable.sync_folder(self._root)
            except OSError:
                shutil.rmtree(draft, ignore_errors=True)
                raise

    def _clean(self, folder: Path) -> None:
        """Remove a folder without a manifest, unless another process may be about to create or delete the dump.

        A volume may have other folders, such as lost+found.
        """
        if not _ID.fullmatch(folder.name.removeprefix(_NEW).removeprefix(_GONE)) or self._get(folder.name):
            return
        with suppress(FileNotFoundError):
            if folder.name.startswith(_NEW) and time.time() - folder.stat().st_mtime < _LEFT_SECONDS:
                return
            shutil.rmtree(folder)


@contextmanager
def storage_errors(path: Path, needed: int = 0) -> Iterator[None]:
    """Turn OSErrors of the block, which needs this many bytes at `path`, into StorageFull or StorageUnavailable."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise StorageUnavailable(f"cannot write to {path}: {error.strerror} (check dumps.storage)") from error
        raise StorageFull(
            f"the volume is full: {path} needs {needed} bytes, {_free(path)} bytes are free: "
            "delete dumps (DELETE /v1/dumps/ID), or enlarge the volume (dumps.storage)"
        ) from error


def _free(path: Path) -> int:
    """Return the number of free bytes on the volume of a path, which need not exist."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def _write(folder: Path, manifest: Manifest) -> None:
    with durable.replacing(folder / MANIFEST) as file:
        file.write(msgspec.json.encode(manifest))

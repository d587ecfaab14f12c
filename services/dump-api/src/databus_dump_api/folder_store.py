"""Dumps on disk: the folder `<root>/<id>` has `manifest.json` and the part files that it lists.

A manifest is replaced atomically. A deletion renames the folder first, which needs no free space; such folders, and
those without a manifest, are removed when dump-api starts.
"""

import os
import re
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import msgspec
from anyio.to_thread import run_sync

from databus_core import durable
from databus_core.errors import FatalError, InvalidSettings
from databus_core.manifest import DumpFile, Manifest, PipelineMoment
from databus_core.runtime import uninterrupted
from databus_dump_api.folder_claim import FolderClaim
from databus_dump_api.problems import StorageFull, StorageUnavailable
from databus_dump_api.storage_errors import free_bytes, storage_errors
from databus_dump_api.store import MANIFEST, ClaimLost, DumpStore

_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
_NEW, _GONE = ".new-", ".gone-"
#: bytes that must be free when a dump is requested
_RESERVE = 2**20
#: age at which what is left of a new dump or a deletion is certainly not in use any more
_LEFT_SECONDS = 3600
#: bytes of a download that are read at a time; with twice as much, 200 downloads make a turn of the event loop twice
#: as long, and are not faster
_CHUNK = 2**15


class FolderStore(DumpStore):
    """A `DumpStore` in a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        #: of each manifest: the file that it was read from, by inode, time and size
        self._read: dict[str, tuple[tuple[int, ...], Manifest]] = {}

    def open(self) -> None:
        """Read all manifests and clean up after a crash."""
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
        return free_bytes(self._root)

    @asynccontextmanager
    async def reading(self, dump: str, file: DumpFile, start: int, stop: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a file, and give its bytes from `start` to before `stop`."""
        path = self._root / dump / file.name
        with ExitStack() as opened:

            def open_file() -> BinaryIO:
                content = opened.enter_context(path.open("rb"))
                content.seek(start)
                return content

            with storage_errors(path):
                content = await uninterrupted(run_sync(open_file))
            yield _chunks(content, stop - start)

    def _pass_by(self, dump: str, moment: PipelineMoment) -> None:
        manifest = self._get(dump)
        if manifest and manifest.passed is None:
            with storage_errors(self._root / dump), suppress(FileNotFoundError):
                _write(self._root / dump, msgspec.structs.replace(manifest, passed=moment))

    def _hide(self, dump: str) -> None:
        with storage_errors(self._root / dump):
            with suppress(FileNotFoundError):  # another replica has just removed it
                (self._root / dump).rename(self._hidden(dump))
            durable.sync_folder(self._root)

    def _restore(self, dump: str) -> None:
        with storage_errors(self._root / dump):
            self._hidden(dump).rename(self._root / dump)
            durable.sync_folder(self._root)

    def _remove(self, dump: str) -> None:
        with storage_errors(self._root / dump), suppress(FileNotFoundError):  # a replica that starts may remove it, too
            shutil.rmtree(self._hidden(dump))

    def _hidden(self, dump: str) -> Path:
        return self._root / f"{_GONE}{dump}"

    def _get(self, dump: str) -> Manifest | None:
        if not re.fullmatch(r"[\w-]{1,64}", dump, re.ASCII):  # it must not lead to another folder
            return None
        path = self._root / dump / MANIFEST
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
        return found

    def _claim(self, dump: str) -> tuple[FolderClaim, Manifest]:
        claim = FolderClaim(self._root / dump)
        manifest = self._get(dump)
        if manifest is None or manifest.state.ended:
            claim.release()
            raise ClaimLost(f"dump {dump} has ended")
        return claim, manifest

    def _add(self, manifest: Manifest) -> None:
        """Write the manifest into a folder that is renamed afterwards: no other process finds a dump without one."""
        folder, draft = self._root / manifest.id, self._root / f"{_NEW}{manifest.id}"
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


def _write(folder: Path, manifest: Manifest) -> None:
    with durable.replacing(folder / MANIFEST) as file:
        file.write(msgspec.json.encode(manifest))


async def _chunks(file: BinaryIO, size: int) -> AsyncIterator[bytes]:
    while size and (chunk := await uninterrupted(run_sync(file.read, min(_CHUNK, size)))):
        size -= len(chunk)
        yield chunk

"""Dumps on disk: the folder `<root>/<id>` has `manifest.json` and the part files that it lists.

A manifest is replaced atomically, and is on disk before a client can see the new state; only a failure is visible even
if it cannot be written. A deletion removes the manifest first, which needs no free space. When dump-api starts, dumps
that are still pending or running become failed, and folders without a manifest are removed.
"""

import asyncio
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile

import msgspec

from databus_core import durable
from databus_core.errors import FatalError, InvalidSettings
from databus_core.manifest import Manifest, State
from databus_dump_api.problems import StorageFull, StorageUnavailable

_MANIFEST = "manifest.json"
_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")
#: bytes that must be free when a dump is requested
_RESERVE = 2**20


class DumpStore:
    """The manifests and folders of all dumps. No other process may write into them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._manifests: dict[str, Manifest] = {}

    def open(self) -> None:
        """Read all manifests and clean up after a crash. Blocks; called once, before anything else.

        A full volume is no error: its dumps can be read and deleted. Raises InvalidSettings if the folder is not
        writable, FatalError for a manifest that cannot be decoded, StorageUnavailable if the clean-up fails.
        """
        with suppress(StorageFull):
            self.require_space()
        with storage_errors(self._root):
            for folder in self._root.iterdir():
                if _ID.fullmatch(folder.name):  # a volume may have other folders, such as lost+found
                    self._recover(folder)

    def require_space(self) -> None:
        """Raise StorageFull unless 1 MiB is free, and InvalidSettings if files cannot be written. Blocks."""
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

    def get(self, dump: str) -> Manifest | None:
        """Return a dump's manifest; None if there is no such dump."""
        return self._manifests.get(dump)

    def newest_first(self) -> list[Manifest]:
        """Return all manifests, the newest first."""
        return sorted(self._manifests.values(), key=lambda manifest: manifest.created, reverse=True)

    def folder(self, dump: str) -> Path:
        """Return the folder of a dump's files."""
        return self._root / dump

    def new_id(self, created: datetime) -> str:
        """Make an id that sorts by time of creation."""
        return f"{created.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"

    async def save(self, manifest: Manifest) -> None:
        """Make a manifest durable, then visible. Raises StorageFull or StorageUnavailable."""
        await asyncio.to_thread(self._write, manifest)
        self._manifests[manifest.id] = manifest

    async def fail(self, manifest: Manifest, error: str) -> None:
        """Remove a dump's files, and record why it failed. Raises StorageFull or StorageUnavailable.

        The dump is visible as failed at the end, also after an error: until then it cannot be deleted.
        """
        failed = _failed(manifest, error)
        try:
            await asyncio.to_thread(self._remove_files, manifest.id)
            await asyncio.to_thread(self._write, failed)
        finally:
            self._manifests[manifest.id] = failed

    async def remove(self, dump: str) -> None:
        """Delete a dump. Without its manifest, a crash cannot bring the dump back. Raises StorageUnavailable."""
        folder = self.folder(dump)
        with storage_errors(folder):
            await asyncio.to_thread(_remove_manifest, folder)
            del self._manifests[dump]
            await asyncio.to_thread(shutil.rmtree, folder)

    def _recover(self, folder: Path) -> None:
        path = folder / _MANIFEST
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
        except FileNotFoundError:  # the dump was being deleted, or its first manifest was being written
            shutil.rmtree(folder)
            return
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FatalError(f"{path}: not a manifest ({error}): restore it, or remove the folder") from error
        if manifest.state in (State.PENDING, State.RUNNING):
            self._remove_files(manifest.id)
            manifest = _failed(manifest, "dump-api stopped before the dump was complete; request a new dump")
            with suppress(StorageFull):
                self._write(manifest)
        self._manifests[manifest.id] = manifest

    def _write(self, manifest: Manifest) -> None:
        folder, content = self.folder(manifest.id), msgspec.json.encode(manifest)
        with storage_errors(folder / _MANIFEST, len(content)):
            try:
                durable.make_folder(folder)
                with durable.replacing(folder / _MANIFEST) as file:
                    file.write(content)
            except OSError:
                with suppress(OSError):
                    folder.rmdir()  # if it is empty: the dump is a new one
                raise

    def _remove_files(self, dump: str) -> None:
        folder = self.folder(dump)
        with storage_errors(folder):
            for path in folder.iterdir():
                if path.name != _MANIFEST:
                    path.unlink()


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


def _remove_manifest(folder: Path) -> None:
    (folder / _MANIFEST).unlink(missing_ok=True)
    durable.sync_folder(folder)


def _failed(manifest: Manifest, error: str) -> Manifest:
    return msgspec.structs.replace(manifest, state=State.FAILED, completed=datetime.now(UTC), error=error)

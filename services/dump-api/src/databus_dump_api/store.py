"""Dumps on disk: the folder `<root>/<id>` has `manifest.json` and the part files that it lists.

A manifest is replaced atomically, and is on disk before a client can see the new state. When dump-api starts, dumps
that are still pending or running become failed, and interrupted deletions are completed.
"""

import asyncio
import re
import secrets
import shutil
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from databus import durable
from databus.errors import FatalError, InvalidSettings
from databus.manifest import Manifest, State

_MANIFEST = "manifest.json"
_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")


class DumpStore:
    """The manifests and folders of all dumps. No other process may write into them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._manifests: dict[str, Manifest] = {}

    def open(self) -> None:
        """Read all manifests and clean up after a crash. Blocks; called once, before anything else.

        Raises InvalidSettings if the folder is not writable, FatalError for a manifest that cannot be decoded.
        """
        self.require_writable()
        for folder in self._root.iterdir():
            if _ID.fullmatch(folder.name):  # a volume may have other folders, such as lost+found
                self._recover(folder)

    def require_writable(self) -> None:
        """Raise InvalidSettings unless files can be written. Blocks."""
        probe = self._root / f".probe-{secrets.token_hex(4)}"
        try:
            durable.make_folder(self._root)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InvalidSettings(f"dumps.storage: cannot write to {self._root}: {error.strerror}") from error

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
        """Make a manifest durable, then visible."""
        await asyncio.to_thread(self._write, manifest)
        self._manifests[manifest.id] = manifest

    async def fail(self, manifest: Manifest, error: str) -> None:
        """Remove a dump's files and record why it failed."""
        await asyncio.to_thread(self._remove_files, manifest.id)
        await self.save(_failed(manifest, error))

    async def remove(self, manifest: Manifest) -> None:
        """Delete a dump. Its manifest is marked `deleted` first, so that a crash cannot bring the dump back."""
        await self.save(msgspec.structs.replace(manifest, state=State.DELETED))
        await asyncio.to_thread(shutil.rmtree, self.folder(manifest.id))
        del self._manifests[manifest.id]

    def _recover(self, folder: Path) -> None:
        path = folder / _MANIFEST
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
        except FileNotFoundError:
            if not any(folder.iterdir()):  # left by a crash before the first manifest, or during a deletion
                folder.rmdir()
            return
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise FatalError(f"{path}: not a manifest ({error}): restore it, or remove the folder") from error
        if manifest.state is State.DELETED:
            shutil.rmtree(folder)
            return
        if manifest.state in (State.PENDING, State.RUNNING):
            self._remove_files(manifest.id)
            manifest = _failed(manifest, "dump-api stopped before the dump was complete; request a new dump")
            self._write(manifest)
        self._manifests[manifest.id] = manifest

    def _write(self, manifest: Manifest) -> None:
        folder = self.folder(manifest.id)
        durable.make_folder(folder)
        with durable.replacing(folder / _MANIFEST) as file:
            file.write(msgspec.json.encode(manifest))

    def _remove_files(self, dump: str) -> None:
        for path in self.folder(dump).iterdir():
            if path.name != _MANIFEST:
                path.unlink()


def _failed(manifest: Manifest, error: str) -> Manifest:
    return msgspec.structs.replace(manifest, state=State.FAILED, completed=datetime.now(UTC), error=error)

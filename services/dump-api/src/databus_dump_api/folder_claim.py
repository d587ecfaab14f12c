"""Who may write a dump, when several replicas of dump-api share a folder.

A writer makes a *claim*: a folder in the dump's folder. Part files and new manifests are written into it, and renamed
to where clients see them. A new claim first renames the others into itself. From then on their writers cannot open,
rename or replace anything, because these paths do not exist any more: not even a process that was suspended for an
hour. Whoever claims reads the manifest afterwards, so it sees what the last writer has committed.
"""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from databus_core import durable
from databus_core.manifest import DumpFile, Manifest
from databus_dump_api.storage_errors import storage_errors
from databus_dump_api.store import MANIFEST, ClaimLost, part_bytes

_PREFIX = ".claim-"


class FolderClaim:
    """A `Claim` of a dump in a folder."""

    def __init__(self, dump: Path) -> None:
        """Claim the dump in this folder. Raises ClaimLost if there is no such dump, StorageFull."""
        self._dump = dump
        self.folder = dump / f"{_PREFIX}{secrets.token_hex(8)}"
        try:
            with self._fenced():
                if others := list(dump.glob(f"{_PREFIX}*")):
                    others[0].rename(self.folder)  # unlike a new folder, this needs no space
                else:
                    self.folder.mkdir()
                for other in dump.glob(f"{_PREFIX}*"):
                    if other != self.folder:
                        other.rename(self.folder / other.name)
                self._clear()
        except ClaimLost:  # another claim may have renamed ours, or one that we have seen
            self.release()
            raise

    @property
    def held(self) -> bool:
        """Whether this is still the claim of the dump."""
        return self.folder.is_dir()

    def size(self) -> int:
        """Return the bytes of all files, also of those that are being written."""
        return part_bytes(self._dump) + part_bytes(self.folder)

    def save(self, manifest: Manifest) -> None:
        """Replace the manifest. Raises ClaimLost, StorageFull."""
        draft = self.folder / MANIFEST
        with self._fenced():
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(manifest))
                durable.close(file)
            draft.replace(self._dump / MANIFEST)
            durable.sync_folder(self._dump)

    def publish(self, file: DumpFile) -> DumpFile:
        """Rename a file to where clients look for it. Raises ClaimLost."""
        with self._fenced():
            (self.folder / file.name).replace(self._dump / file.name)
            durable.sync_folder(self._dump)
        return file

    @contextmanager
    def local(self, file: DumpFile) -> Iterator[Path]:
        """Give a published file."""
        yield self._dump / file.name

    def finish(self, manifest: Manifest) -> None:
        """Remove the files that a last manifest does not list, save it, and release the claim.

        The files are removed first, because the manifest may need their space. Raises ClaimLost, StorageFull.
        """
        kept = {self.folder.name, MANIFEST, *(file.name for file in manifest.files)}
        with self._fenced():
            for path in self._dump.iterdir():
                if path.name not in kept:
                    path.rename(self.folder / path.name)  # fails if the claim is lost meanwhile
            self._clear()
        self.save(manifest)
        self.release()

    def release(self) -> None:
        """Remove the claim and what is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _clear(self) -> None:
        """Remove the claims that this one has replaced, and unfinished files."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        with storage_errors(self._dump):
            try:
                yield
            except FileNotFoundError as error:
                raise ClaimLost(f"{self._dump} was claimed by another writer") from error

"""Who may write a dump, when several replicas of dump-api share a folder.

A writer makes a *claim*: a folder in the dump's folder. Part files and new manifests are written into it, and renamed
to where clients see them. A new claim first renames the others into itself. From then on their writers cannot open,
rename or replace anything, because these paths do not exist any more: not even a process that was suspended for an
hour. Whoever claims reads the manifest afterwards, so it sees what the last writer has committed.
"""

import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from databus_core import durable
from databus_core.errors import RetryableError
from databus_core.manifest import DumpFile, Manifest

MANIFEST = "manifest.json"
_PREFIX = ".claim-"


class ClaimLost(RetryableError):
    """Another claim of the dump was made, or the dump was deleted."""


class Claim:
    """The right to write a dump, until another claim of it is made. All methods block, and may raise OSErrors."""

    def __init__(self, dump: Path) -> None:
        """Claim the dump in this folder. Raises ClaimLost if there is no such dump."""
        self._dump = dump
        #: folder for the files that are being written
        self.folder = dump / f"{_PREFIX}{secrets.token_hex(8)}"
        try:
            if others := list(dump.glob(f"{_PREFIX}*")):
                others[0].rename(self.folder)  # unlike a new folder, this needs no space
            else:
                self.folder.mkdir()
            for other in dump.glob(f"{_PREFIX}*"):
                if other != self.folder:
                    other.rename(self.folder / other.name)
            self._clear()
        except FileNotFoundError as error:  # another claim may have renamed ours, or one that we have seen
            self.release()
            raise ClaimLost(f"{dump} was claimed by another writer") from error

    @property
    def held(self) -> bool:
        """Whether this is still the claim of the dump."""
        return self.folder.is_dir()

    def save(self, manifest: Manifest) -> None:
        """Replace the manifest. Raises ClaimLost."""
        draft = self.folder / MANIFEST
        try:
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(manifest))
                durable.close(file)
            draft.replace(self._dump / MANIFEST)
        except FileNotFoundError as error:
            raise ClaimLost(f"{self._dump} was claimed by another writer") from error
        durable.sync_folder(self._dump)

    def publish(self, files: Iterable[DumpFile]) -> None:
        """Rename files to where clients look for them. Raises ClaimLost."""
        try:
            for file in files:
                (self.folder / file.name).replace(self._dump / file.name)
        except FileNotFoundError as error:
            raise ClaimLost(f"{self._dump} was claimed by another writer") from error
        durable.sync_folder(self._dump)

    def remove_files(self) -> None:
        """Remove all files of the dump but its manifest. Raises ClaimLost."""
        try:
            for path in self._dump.iterdir():
                if path not in (self.folder, self._dump / MANIFEST):
                    path.rename(self.folder / path.name)  # fails if the claim is lost meanwhile
            self._clear()
        except FileNotFoundError as error:
            raise ClaimLost(f"{self._dump} was claimed by another writer") from error

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

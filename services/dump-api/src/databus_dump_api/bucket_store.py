"""Dumps in S3: the object `manifests/<id>.json` has a manifest, and `files/<id>/` the part files that it lists.

A manifest is replaced only if it has the version that was read before. A *claim* is such a replacement, with a token
that no other claim has: whoever lost its claim knows only an older version. Files of different claims have different
names, so a writer that lost its claim overwrites nothing. Files that no manifest lists are removed with their dump, or
when dump-api starts.
"""

import math
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import gettempdir, mkdtemp

import msgspec

from databus_core.errors import DatabusError, FatalError
from databus_core.manifest import DumpFile, Manifest, PipelineMoment
from databus_core.object_store import ObjectChanged, ObjectStore
from databus_dump_api.problems import StorageUnavailable
from databus_dump_api.storage_errors import storage_errors
from databus_dump_api.store import ClaimLost, DumpStore, part_bytes

_MANIFESTS, _FILES = "manifests", "files"
#: age at which a file without a manifest is certainly not that of a dump which is being taken
_LEFT = timedelta(hours=1)


class _Stored(Manifest, frozen=True, kw_only=True):
    """A manifest as it is in S3."""

    #: token of the last claim
    claim: str = ""
    #: whether the dump is being deleted
    hidden: bool = False


class BucketStore(DumpStore):
    """A `DumpStore` in S3."""

    def __init__(self, url: str) -> None:
        """`url`: `s3://bucket` or `s3://bucket/prefix`."""
        self._objects = ObjectStore(url)
        #: of each manifest: its version and what it was then
        self._read: dict[str, tuple[str, _Stored]] = {}

    def open(self) -> None:
        """Read all manifests and clean up after a crash."""
        self.require_space()
        known = set()
        for manifest in self._all_stored():
            if manifest.hidden:
                self._remove(manifest.id)
            else:
                known.add(manifest.id)
        old = datetime.now(UTC) - _LEFT
        self._objects.delete(
            found.name
            for found in self._objects.names_in(_FILES)
            if found.modified < old and found.name.split("/")[1] not in known
        )

    def require_space(self) -> None:
        """Raise ObjectStoreUnavailable unless the bucket can be read. Its space has no limit."""
        next(self._objects.names_in(_MANIFESTS), None)

    def free_bytes(self) -> float:
        """Return infinity."""
        return math.inf

    @asynccontextmanager
    async def reading(self, dump: str, file: DumpFile, start: int, stop: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a file, and give its bytes from `start` to before `stop`."""
        try:
            found = await self._objects.stream(f"{_FILES}/{dump}/{file.name}", start, stop)
        except FileNotFoundError as error:
            raise StorageUnavailable(f"{self._objects.url_of(f'{_FILES}/{dump}/{file.name}')} is gone") from error
        yield found

    def _get(self, dump: str) -> Manifest | None:
        found = self._stored(dump)
        return _shown(found[1]) if found and not found[1].hidden else None

    def _all(self) -> list[Manifest]:
        return [_shown(manifest) for manifest in self._all_stored() if not manifest.hidden]

    def _all_stored(self) -> list[_Stored]:
        found = {}
        for listed in self._objects.names_in(_MANIFESTS):
            dump = listed.name.removeprefix(f"{_MANIFESTS}/").removesuffix(".json")
            known = self._read.get(dump)
            if not known or known[0] != listed.version:
                known = self._stored(dump)
            if known:
                found[dump] = known
        self._read = found
        return [manifest for _, manifest in found.values()]

    def _stored(self, dump: str) -> tuple[str, _Stored] | None:
        return _read(self._objects, dump) if re.fullmatch(r"[\w-]{1,64}", dump, re.ASCII) else None

    def _add(self, manifest: Manifest) -> None:
        try:
            self._objects.create(_name(manifest.id), _encoded(manifest))
        except ObjectChanged as error:
            raise StorageUnavailable(f"dump {manifest.id} is there already: request it again") from error

    def _pass_by(self, dump: str, moment: PipelineMoment) -> None:
        self._change(dump, hidden=False, passed=moment)

    def _hide(self, dump: str) -> None:
        self._change(dump, hidden=True)

    def _restore(self, dump: str) -> None:
        self._change(dump, hidden=False)

    def _change(self, dump: str, **fields: object) -> None:
        """Replace fields of the manifest of a dump that has ended, if it is still there."""
        while found := self._stored(dump):
            version, manifest = found
            if "passed" in fields and (manifest.hidden or manifest.passed):
                return
            with suppress(ObjectChanged):
                self._objects.replace(_name(dump), _encoded(msgspec.structs.replace(manifest, **fields)), version)
                return

    def _remove(self, dump: str) -> None:
        self._objects.delete(found.name for found in self._objects.names_in(f"{_FILES}/{dump}"))
        self._objects.delete([_name(dump)])

    def _claim(self, dump: str) -> "tuple[BucketClaim, Manifest]":
        found = self._stored(dump)
        if found is None or found[1].hidden or found[1].state.ended:
            raise ClaimLost(f"dump {dump} has ended")
        version, manifest = found
        return BucketClaim(self._objects, manifest, version), _shown(manifest)


class BucketClaim:
    """A `Claim` of a dump in S3."""

    def __init__(self, objects: ObjectStore, manifest: _Stored, version: str) -> None:
        """Claim a dump whose manifest has this version. Raises ClaimLost if it has another one."""
        self._objects = objects
        self._token = secrets.token_hex(4)
        self._dump = manifest.id
        self._version = version
        self._published = sum(file.bytes for file in manifest.files)
        self.save(manifest)
        with storage_errors(Path(gettempdir())):
            self.folder = Path(mkdtemp(prefix="databus-"))

    @property
    def held(self) -> bool:
        """Whether this is still the claim of the dump. Its version may be changing: `save` runs in another thread."""
        return self._version_if_held() is not None

    def size(self) -> int:
        """Return the bytes of all files, also of those that are being written."""
        return self._published + part_bytes(self.folder)

    def save(self, manifest: Manifest) -> None:
        """Replace the manifest. Raises ClaimLost."""
        name, content = _name(self._dump), _encoded(manifest, self._token)
        version: str | None = self._version
        while version is not None:
            with suppress(ObjectChanged):
                self._version = self._objects.replace(name, content, version)
                return
            version = self._version_if_held()  # an earlier replacement may have been done although its answer was lost
        raise ClaimLost(f"dump {self._dump} was claimed by another writer")

    def _version_if_held(self) -> str | None:
        found = _read(self._objects, self._dump)
        return found[0] if found and found[1].claim == self._token and not found[1].hidden else None

    def publish(self, file: DumpFile) -> DumpFile:
        """Upload a file, and remove it from this machine."""
        name, path = f"{self._token}-{file.name}", self.folder / file.name
        self._objects.upload(self._path(name), path)
        path.unlink()
        self._published += file.bytes
        return msgspec.structs.replace(file, name=name)

    @contextmanager
    def local(self, file: DumpFile) -> Iterator[Path]:
        """Download a published file, until the end of the block."""
        path = self.folder / file.name
        with storage_errors(path, file.bytes):
            self._objects.download(self._path(file.name), path)
        yield path
        path.unlink()

    def finish(self, manifest: Manifest) -> None:
        """Replace the manifest by the last one, remove the files that it does not list, and release the claim.

        The files are removed last: only then nobody else can claim the dump. Raises ClaimLost.
        """
        self.save(manifest)
        listed = {self._path(file.name) for file in manifest.files}
        with suppress(DatabusError):  # they are removed with the dump
            found = {each.name for each in self._objects.names_in(f"{_FILES}/{self._dump}")}
            self._objects.delete(found - listed)
        self.release()

    def release(self) -> None:
        """Remove the files that were not published."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> str:
        return f"{_FILES}/{self._dump}/{name}"


def _read(objects: ObjectStore, dump: str) -> tuple[str, _Stored] | None:
    """Read the version of a manifest, and the manifest."""
    found = objects.get(_name(dump))
    if found is None:
        return None
    content, version = found
    try:
        return version, msgspec.json.decode(content, type=_Stored)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = f"{objects.url_of(_name(dump))}: not a manifest ({error}): restore or remove the object"
        raise FatalError(text) from error


def _name(dump: str) -> str:
    return f"{_MANIFESTS}/{dump}.json"


def _encoded(manifest: Manifest, claim: str | None = None) -> bytes:
    fields = {name: getattr(manifest, name) for name in manifest.__struct_fields__}
    return msgspec.json.encode(_Stored(**fields if claim is None else fields | {"claim": claim}))


def _shown(stored: _Stored) -> Manifest:
    return Manifest(**{name: getattr(stored, name) for name in Manifest.__struct_fields__})

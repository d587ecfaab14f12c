"""Values that are too large for Kafka, stored as files or in S3. They never change: a name has a hash of its value."""

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote, unquote, urlsplit

from databus_core import durable
from databus_core.errors import FatalError
from databus_core.metrics import publisher as metrics
from databus_messages.formats.base import ClaimCheck

if TYPE_CHECKING:
    from databus_core.object_store import ObjectStore


class _Storage(Protocol):
    """Where values are. All methods block."""

    def write(self, name: str, value: bytes) -> str:
        """Store a value durably and return its URL."""


class ClaimChecks:
    """Stores values below a URL, in a folder for each topic."""

    def __init__(self, url: str) -> None:
        self._storage = _storage(url)

    async def store(self, topic: str, name: str, value: bytes) -> ClaimCheck:
        """Store a value durably; the same name and value give the same file.

        Raises FatalError if writing a file fails, and ObjectStoreUnavailable.
        """
        digest = hashlib.sha256(value).hexdigest()
        path = f"{topic}/{quote(f'{name}-{digest[:16]}', safe='')}"
        url = await asyncio.to_thread(self._storage.write, path, value)
        metrics.CLAIM_CHECKS.inc()
        return ClaimCheck(url, len(value), digest)


def _storage(url: str) -> _Storage:
    if url.startswith("s3:"):
        # Only claim checks in S3 need the library.
        from databus_core.object_store import ObjectStore  # noqa: PLC0415

        return _Bucket(ObjectStore(url))
    return _Folder(Path(unquote(urlsplit(url).path)))


class _Folder:
    def __init__(self, root: Path) -> None:
        self._root = root

    def write(self, name: str, value: bytes) -> str:
        path = self._root / name
        try:
            durable.make_folder(path.parent)
            with durable.replacing(path) as file:
                file.write(value)
        except OSError as error:
            raise FatalError(f"publisher.claim_checks: cannot write {path}: {error.strerror}") from error
        return path.as_uri()


class _Bucket:
    def __init__(self, objects: "ObjectStore") -> None:
        self._objects = objects

    def write(self, name: str, value: bytes) -> str:
        self._objects.upload(name, value)
        return self._objects.url_of(name)

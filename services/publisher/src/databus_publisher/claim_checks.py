"""Values that are too large for Kafka, stored as files. A file never changes: its name has a hash of its content."""

import asyncio
import hashlib
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from databus_core import durable, metrics
from databus_core.errors import FatalError
from databus_messages.formats.base import ClaimCheck


class ClaimChecks:
    """Stores values in a folder, with a subfolder for each topic."""

    def __init__(self, url: str) -> None:
        self._root = Path(unquote(urlsplit(url).path))

    async def store(self, topic: str, name: str, value: bytes) -> ClaimCheck:
        """Store a value durably; the same name and value give the same file. Raises FatalError if writing fails."""
        digest = hashlib.sha256(value).hexdigest()
        path = self._root / topic / quote(f"{name}-{digest[:16]}", safe="")
        try:
            await asyncio.to_thread(_write, path, value)
        except OSError as error:
            raise FatalError(f"publisher.claim_checks: cannot write {path}: {error.strerror}") from error
        metrics.CLAIM_CHECKS.inc()
        return ClaimCheck(path.as_uri(), len(value), digest)


def _write(path: Path, value: bytes) -> None:
    durable.make_folder(path.parent)
    with durable.replacing(path) as file:
        file.write(value)

"""Errors of the folder of the dumps, and its free space."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from databus_dump_api.problems import StorageFull, StorageUnavailable


@contextmanager
def storage_errors(path: Path, needed: int = 0) -> Iterator[None]:
    """Turn OSErrors of the block, which needs this many bytes at `path`, into StorageFull or StorageUnavailable."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise StorageUnavailable(f"cannot write to {path}: {error.strerror} (check dumps.storage)") from error
        raise StorageFull(
            f"the volume is full: {path} needs {needed} bytes, {free_bytes(path)} bytes are free: "
            "delete dumps (DELETE /v1/dumps/ID), or enlarge the volume (dumps.storage)"
        ) from error


def free_bytes(path: Path) -> int:
    """Return the number of free bytes on the volume of a path, which need not exist."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free

"""The cache of downloads: folders that are either whole or not there, shared by all devstack processes of a user."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def root() -> Path:
    """Return the cache's folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "databus-devstack"


def installed(name: str, build: Callable[[Path], None]) -> Path:
    """Return the cached folder `name`; when it is missing, let `build` fill a new one and move it there.

    What is there is never built again: a `build` that makes something else needs another name.
    """
    folder = root() / name
    if not folder.exists():
        with locked(root() / f"{name}.lock"):
            if not folder.exists():
                new = root() / f"{name}.new"
                shutil.rmtree(new, ignore_errors=True)  # of an installation that did not get to its end
                new.mkdir()
                build(new)
                new.rename(folder)
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on this file; waits for other processes and threads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

"""The download cache: folders that are complete or absent, shared by all devstack processes of a user."""

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
    """Return the cached folder `name`; if it is missing, `build` fills a temporary folder, which is then renamed.

    An existing folder is never built again: when `build` changes, the name has to change.
    """
    folder = root() / name
    if not folder.exists():
        with locked(root() / f"{name}.lock"):
            if not folder.exists():
                new = root() / f"{name}.new"
                shutil.rmtree(new, ignore_errors=True)  # left by an interrupted installation
                new.mkdir()
                build(new)
                new.rename(folder)
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on this file; blocks while another process or thread holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

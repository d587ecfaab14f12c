"""A file system of its own size, for what happens when it is full."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def volume(folder: Path, size: str) -> Iterator[None]:
    """Mount an empty file system, in memory, on a folder; `size` as in `512m`."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        unmount(folder)


def unmount(folder: Path) -> None:
    """Remove a volume with its content."""
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize(folder: Path, size: str) -> None:
    """Make a volume larger or smaller, but not smaller than its content; `size` as in `512m`."""
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)

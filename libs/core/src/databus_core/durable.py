"""Durable files: what these functions have written survives a crash of the machine. All of them block.

A file's content and its name are stored separately: syncing the file stores the content, syncing the folder the name.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file, which replaces `path` at the end of the block; if the block fails, `path` is not changed."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as file:
            yield file
            close(file)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def close(file: BinaryIO) -> None:
    """Sync a file's content and close it. The name of a new file is durable only after `sync_folder`."""
    file.flush()
    os.fsync(file.fileno())
    file.close()


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, durably."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Sync the names in a folder."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

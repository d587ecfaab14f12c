"""Files that survive a crash of the machine: a file's content is synced first, then its name."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from databus_core import durable
from databus_core.manifest import Manifest, State
from databus_dump_api.folder_store import FolderStore

_ROOT = Path(__file__).parents[3]

#: inode of each file or folder that was synced, and whether the target's name existed at that time
Synced = list[tuple[int, bool]]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


@pytest.fixture
def synced(target: Path, monkeypatch: pytest.MonkeyPatch) -> Synced:
    """The files and folders in the order in which they are synced."""
    found: Synced = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        found.append((os.fstat(descriptor).st_ino, target.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    return found


def inode(path: Path) -> int:
    return path.stat().st_ino


def test_content_is_synced_before_the_name_appears_and_the_folder_afterwards(target: Path, synced: Synced) -> None:
    with durable.replacing(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"
    assert synced == [(inode(target), False), (inode(target.parent), True)]
    assert list(target.parent.iterdir()) == [target]


def test_a_failure_leaves_the_older_file(target: Path) -> None:
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="no space"), durable.replacing(target) as file:
        file.write(b"new")
        raise OSError("no space")
    assert target.read_bytes() == b"old"
    assert list(target.parent.iterdir()) == [target]


def test_the_parent_of_each_new_folder_is_synced(target: Path, synced: Synced) -> None:
    durable.make_folder(target / "a" / "b")
    assert [number for number, _ in synced] == [inode(target.parent), inode(target), inode(target / "a")]
    synced.clear()
    durable.make_folder(target / "a" / "b")
    assert not synced


async def test_a_new_manifest_and_its_folder_are_synced(target: Path, synced: Synced) -> None:
    store = FolderStore(target)
    store.open()
    await store.add(Manifest(id="d", pipeline="p", state=State.PENDING, created=datetime.now(UTC)))
    folder = target / "d"
    expected = [target.parent, target, folder / "manifest.json", folder, target]
    assert [number for number, _ in synced] == [inode(path) for path in expected]


def test_no_module_but_durable_syncs_files() -> None:
    sources = [path for part in ("libs", "services") for path in (_ROOT / part).glob("*/src/**/*.py")]
    assert len(sources) > 100
    assert [path.name for path in sources if "fsync(" in path.read_text()] == ["durable.py"]

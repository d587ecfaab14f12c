"""Claims of a dump: whoever lost its claim changes nothing any more, at whatever step it was suspended."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from databus_core.manifest import DumpFile, Manifest, State
from databus_dump_api.folder_claim import FolderClaim
from databus_dump_api.folder_store import FolderStore
from databus_dump_api.store import ClaimLost

RUNNING = Manifest(id="d", pipeline="shop", state=State.RUNNING, created=datetime(2026, 1, 1, tzinfo=UTC))
FILE = DumpFile(name="shop.t.00001.jsonl.zst", table="shop.t", rows=1, bytes=3, sha256="")
COMPLETE = msgspec.structs.replace(RUNNING, state=State.COMPLETE, files=(FILE,))


@pytest.fixture
async def store(tmp_path: Path) -> FolderStore:
    store = FolderStore(tmp_path)
    await store.add(RUNNING)
    return store


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_files_are_visible_when_their_writer_completes_the_dump(store: FolderStore, tmp_path: Path) -> None:
    claim, manifest = await store.claim("d")
    assert manifest == RUNNING
    (claim.folder / FILE.name).write_bytes(b"row")
    assert FILE.name not in names_in(tmp_path / "d")
    claim.publish(FILE)
    await store.complete(claim, COMPLETE)
    assert await store.get("d") == COMPLETE
    assert names_in(tmp_path / "d") == ["manifest.json", FILE.name]


@pytest.mark.parametrize(
    "step",
    [
        lambda claim: claim.save(COMPLETE),
        lambda claim: claim.publish(FILE),
        lambda claim: claim.finish(RUNNING),
    ],
    ids=["save", "publish", "finish"],
)
async def test_a_writer_whose_claim_was_taken_changes_nothing(
    store: FolderStore, tmp_path: Path, step: Callable[[FolderClaim], None]
) -> None:
    suspended, _ = await store.claim("d")
    (suspended.folder / FILE.name).write_bytes(b"row")
    claim, manifest = await store.claim("d")
    ended = await store.end(claim, manifest, State.FAILED, "its writer was suspended")
    assert not suspended.held
    with pytest.raises(ClaimLost):
        step(suspended)
    with pytest.raises(FileNotFoundError):
        (suspended.folder / "shop.t.00002.jsonl.zst").write_bytes(b"row")
    suspended.release()
    assert await store.get("d") == ended
    assert names_in(tmp_path / "d") == ["manifest.json"]


async def test_whoever_claims_sees_what_the_last_writer_committed(store: FolderStore) -> None:
    claim, _ = await store.claim("d")
    await store.complete(claim, COMPLETE)
    with pytest.raises(ClaimLost):
        await store.claim("d")
    with pytest.raises(ClaimLost):
        await store.claim("unknown")
    assert await store.get("d") == COMPLETE


async def test_a_dump_whose_writer_is_gone_can_be_claimed_on_a_full_volume(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, _ = await store.claim("d")

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", full)
    claim, _ = await store.claim("d")
    assert (claim.held, gone.held) == (True, False)


@pytest.mark.parametrize("look", [1, 2])
@pytest.mark.parametrize("before", [True, False])
async def test_of_two_claims_at_the_same_time_at_most_one_succeeds(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: int, before: bool
) -> None:
    """The second is made just before or after one of the first's two looks for other claims."""
    claims: list[FolderClaim] = []
    looks, glob = 0, Path.glob

    def interrupted(path: Path, pattern: str) -> list[Path]:
        nonlocal looks
        looks += 1
        now, found = looks == look, [] if before else list(glob(path, pattern))
        if now:
            claims.append(FolderClaim(path))
        return list(glob(path, pattern)) if before or not now else found

    monkeypatch.setattr(Path, "glob", interrupted)
    with suppress(ClaimLost):
        claims.append(FolderClaim(tmp_path / "d"))
    assert claims
    assert sum(claim.held for claim in claims) <= 1
    for claim in claims:
        claim.release()
    assert names_in(tmp_path / "d") == ["manifest.json"]

"""Dumps in a folder and in S3: whoever lost its claim changes nothing, and readers see only what is complete."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from databus_core.errors import ObjectStoreUnavailable
from databus_core.manifest import DumpFile, Manifest, PipelineMoment, State
from databus_core.object_store import ObjectStore
from databus_dump_api.bucket_store import BucketStore
from databus_dump_api.folder_store import FolderStore
from databus_dump_api.problems import StorageUnavailable
from databus_dump_api.store import Claim, ClaimLost, DumpStore

DUMP = "20261121T115346Z-3f2a"
PENDING = Manifest(id=DUMP, pipeline="shop", state=State.PENDING, created=datetime(2026, 1, 1, tzinfo=UTC))
RUNNING = msgspec.structs.replace(PENDING, state=State.RUNNING)
CONTENT = bytes(range(256)) * 1000
MOMENT = PipelineMoment(7, {"t": {0: 5}})


@pytest.fixture(params=["folder", "bucket"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], DumpStore]:
    """Open the storage as another replica of dump-api does."""
    bucket: str = request.getfixturevalue("bucket") if request.param == "bucket" else ""

    def make() -> DumpStore:
        store = BucketStore(bucket) if bucket else FolderStore(tmp_path)
        store.open()
        return store

    return make


@pytest.fixture
def store(reopened: Callable[[], DumpStore]) -> DumpStore:
    return reopened()


def write(claim: Claim, name: str = "shop.gr%C3%B6.00001.jsonl.zst", content: bytes = CONTENT) -> DumpFile:
    """Write and publish a file."""
    (claim.folder / name).write_bytes(content)
    digest = sha256(content).hexdigest()
    return claim.publish(DumpFile(name=name, table="shop.t", rows=1, bytes=len(content), sha256=digest))


async def read(store: DumpStore, file: DumpFile, start: int = 0, stop: int = len(CONTENT)) -> bytes:
    async with store.reading(DUMP, file, start, stop) as chunks:
        return b"".join([chunk async for chunk in chunks])


def with_files(*files: DumpFile) -> Manifest:
    return msgspec.structs.replace(RUNNING, state=State.COMPLETE, files=files)


async def test_a_claim_is_held_while_its_manifest_is_replaced(store: DumpStore) -> None:
    """A chunked dump is saved by one thread, while another one looks whether it still has the claim."""
    await store.add(PENDING)
    claim, _ = await store.claim(DUMP)

    async def replace() -> None:
        for attempts in range(30):
            await store.save(claim, msgspec.structs.replace(RUNNING, attempts=attempts))

    replacing = asyncio.create_task(replace())
    while not replacing.done():
        assert await asyncio.to_thread(lambda: claim.held)
    await replacing
    await store.claim(DUMP)
    assert not claim.held


async def test_a_replacement_whose_answer_was_lost_does_not_lose_the_claim(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = BucketStore(bucket)
    await store.add(PENDING)
    claim, _ = await store.claim(DUMP)
    replace = ObjectStore.replace

    def lost(*arguments: Any) -> str:
        monkeypatch.undo()
        replace(*arguments)
        raise ObjectStoreUnavailable("the connection was lost")

    monkeypatch.setattr(ObjectStore, "replace", lost)
    with pytest.raises(ObjectStoreUnavailable):
        await store.save(claim, msgspec.structs.replace(RUNNING, attempts=1))
    assert claim.held
    await store.save(claim, msgspec.structs.replace(RUNNING, attempts=2))
    await store.claim(DUMP)
    with pytest.raises(ClaimLost):
        await store.save(claim, RUNNING)


async def test_a_dump_from_its_request_to_its_deletion(store: DumpStore, reopened: Callable[[], DumpStore]) -> None:
    await store.add(PENDING)
    claim, manifest = await store.claim(DUMP)
    assert manifest == PENDING
    await store.save(claim, RUNNING)
    assert await reopened().newest_first() == [RUNNING]
    first = await asyncio.to_thread(write, claim)
    second = await asyncio.to_thread(write, claim, "second")
    assert claim.size() == 2 * len(CONTENT)
    with claim.local(first) as path:
        assert path.read_bytes() == CONTENT
    await store.complete(claim, with_files(first, second))
    assert await store.get(DUMP) == with_files(first, second)
    assert await read(store, first) == CONTENT
    assert await read(store, second, 1000, 5000) == CONTENT[1000:5000]
    await store.pass_by(DUMP, MOMENT)
    await store.pass_by(DUMP, PipelineMoment(8, {}))  # only the first counts
    found = await reopened().get(DUMP)
    assert found
    assert found.passed == MOMENT
    await store.hide(DUMP)
    assert (await store.get(DUMP), await store.newest_first()) == (None, [])
    await store.pass_by(DUMP, MOMENT)
    await store.restore(DUMP)
    assert await read(store, first) == CONTENT
    await store.hide(DUMP)
    await store.remove(DUMP)
    await store.pass_by(DUMP, MOMENT)
    assert await reopened().newest_first() == []
    with pytest.raises(ClaimLost):
        await store.claim(DUMP)


async def test_a_deletion_that_was_interrupted_is_finished_at_the_next_start(
    store: DumpStore, reopened: Callable[[], DumpStore]
) -> None:
    await store.add(PENDING)
    claim, _ = await store.claim(DUMP)
    file = await asyncio.to_thread(write, claim)
    await store.complete(claim, with_files(file))
    await store.hide(DUMP)
    other = await asyncio.to_thread(reopened)
    await store.pass_by(DUMP, MOMENT)
    assert await other.newest_first() == []
    with pytest.raises(StorageUnavailable, match=r"shop\.gr%C3%B6"):
        await read(store, file)


@pytest.mark.parametrize("step", [lambda claim: claim.save(RUNNING), lambda claim: claim.finish(with_files()), write])
async def test_a_writer_whose_claim_was_taken_changes_nothing(store: DumpStore, step: Callable[[Claim], None]) -> None:
    await store.add(RUNNING)
    suspended, _ = await store.claim(DUMP)
    claim, manifest = await store.claim(DUMP)
    assert (suspended.held, claim.held) == (False, True)
    file = await asyncio.to_thread(write, claim)
    try:
        await asyncio.to_thread(step, suspended)
    except (ClaimLost, FileNotFoundError):
        assert claim.held
    await store.complete(claim, msgspec.structs.replace(manifest, state=State.COMPLETE, files=(file,)))
    assert await read(store, file) == CONTENT
    suspended.release()
    with pytest.raises(ClaimLost):
        await asyncio.to_thread(suspended.save, RUNNING)
    assert await read(store, file) == CONTENT


async def test_files_of_an_earlier_claim_can_be_kept(store: DumpStore) -> None:
    await store.add(RUNNING)
    killed, _ = await store.claim(DUMP)
    first = await asyncio.to_thread(write, killed)
    lost = await asyncio.to_thread(write, killed, "lost")
    await store.save(killed, msgspec.structs.replace(RUNNING, files=(first,)))
    claim, manifest = await store.claim(DUMP)
    assert manifest.files == (first,)
    second = await asyncio.to_thread(write, claim, "second")
    await store.complete(claim, with_files(*manifest.files, second))
    assert [await read(store, file) for file in (first, second)] == [CONTENT, CONTENT]
    with pytest.raises(StorageUnavailable, match="lost"):
        await read(store, lost)


async def test_a_dump_without_a_result_has_no_files(store: DumpStore) -> None:
    await store.add(RUNNING)
    claim, manifest = await store.claim(DUMP)
    file = await asyncio.to_thread(write, claim)
    ended = await store.end(claim, msgspec.structs.replace(manifest, files=(file,)), State.FAILED, "no space")
    assert (ended.state, ended.error, ended.files) == (State.FAILED, "no space", ())
    assert await store.get(DUMP) == ended
    with pytest.raises(StorageUnavailable, match=r"shop\.gr%C3%B6"):
        await read(store, file)


async def test_of_many_claims_at_the_same_time_one_is_held(store: DumpStore) -> None:
    await store.add(RUNNING)
    claims = await asyncio.gather(*(store.claim(DUMP) for _ in range(10)), return_exceptions=True)
    lost = [claim for claim in claims if isinstance(claim, BaseException)]
    assert all(isinstance(error, ClaimLost) for error in lost)
    assert sum(claim[0].held for claim in claims if not isinstance(claim, BaseException)) <= 1
    claim, _ = await store.claim(DUMP)
    assert claim.held

"""Part files, manifests and the SELECT of a dump, without servers."""

import asyncio
import errno
import gc
import hashlib
import json
import os
import shutil
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow
import pytest
import zstandard
from pyarrow import parquet

from common.dump_output import Folder
from databus_core.errors import FatalError
from databus_core.events import Column, Row, Table
from databus_core.manifest import FileFormat, Manifest, State
from databus_dump_api.folder_store import FolderStore
from databus_dump_api.parts import PartWriter
from databus_dump_api.problems import StorageFull
from databus_wire.packed_rows import PackedRows

CREATED = datetime(2026, 11, 21, 11, 53, 46, tzinfo=UTC)
DUMP = "20261121T115346Z-3f2a"
ORDERS = Table(
    schema="shop",
    name="orders",
    columns=(Column(name="id", type="int", raw_type="int(11)"), Column(name="f", type="float", raw_type="float")),
    primary_key=(0,),
)


JSONL, PARQUET = FileFormat.JSONL, FileFormat.PARQUET
SUFFIXES = {JSONL: "jsonl.zst", PARQUET: "parquet"}
both_formats = pytest.mark.parametrize("kind", [JSONL, PARQUET])


def rows_of(path: Path) -> list[Row]:
    if path.suffix == ".parquet":
        columns = [column.cast(pyarrow.binary()).to_pylist() for column in parquet.read_table(path).columns]
        return [list(row) for row in zip(*columns, strict=True)]
    lines = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes()).splitlines()
    return [[c and b64decode(c) for c in row] for line in lines for row in json.loads(line)["Rows"]]


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@both_formats
def test_several_parts_together_contain_all_rows_in_order(tmp_path: Path, kind: FileFormat) -> None:
    parts = PartWriter(Folder(tmp_path), ORDERS, kind, 3000 if kind is JSONL else 100)
    rows: list[Row] = [[b"%d" % number, None] for number in range(100)]
    for row in rows:
        parts.write([row])
    files = parts.close()
    assert [file.name for file in files] == [f"shop.orders.{n:05d}.{SUFFIXES[kind]}" for n in range(1, len(files) + 1)]
    assert {file.format for file in files} == {kind}
    assert len(files) > 2
    assert [row for file in files for row in rows_of(tmp_path / file.name)] == rows
    for file in files:
        content = (tmp_path / file.name).read_bytes()
        assert (file.bytes, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert sum(file.rows for file in files) == len(rows)


@both_formats
@pytest.mark.parametrize("strict", [False, True])
def test_packed_rows_and_lists_make_the_same_file(tmp_path: Path, strict: bool, kind: FileFormat) -> None:
    rows: list[Row] = [[b"7", b"1.1"], [b"8", None]]
    contents = []
    for number, given in enumerate((rows, PackedRows(msgspec.msgpack.encode(rows)))):
        folder = tmp_path / str(number)
        folder.mkdir()
        parts = PartWriter(Folder(folder), ORDERS, kind, 1, strict=strict)
        parts.write(given)
        [file] = parts.close()
        contents.append((folder / file.name).read_bytes())
        assert file.rows == 2
    assert contents[0] == contents[1]
    assert rows_of(folder / file.name) == [[b"7", b"1.1000" if strict else b"1.1"], [b"8", None]]


def test_parquet_files_have_the_table_s_columns_with_text_as_strings_and_any_bytes(tmp_path: Path) -> None:
    columns = [
        Column(name="größe, `a`.b", type="char", raw_type="char(3)"),
        Column(name="b", type="blob", raw_type="blob"),
    ]
    table = Table(schema="shop", name="t", columns=tuple(columns))
    for strict, text in (False, "string"), (True, "binary"):
        parts = PartWriter(Folder(tmp_path), table, PARQUET, 1, strict=strict)
        rows: list[Row] = [[b"\xff", b"\0\xff"], [b"", None]]  # a column may have bytes that are no UTF-8
        parts.write(rows)
        [file] = parts.close()
        schema = parquet.read_schema(tmp_path / file.name)
        assert [(field.name, str(field.type)) for field in schema] == [("größe, `a`.b", text), ("b", "binary")]
        assert rows_of(tmp_path / file.name) == rows
        (tmp_path / file.name).unlink()


def test_rows_wait_in_memory_for_a_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("databus_dump_api.parquet._ROW_GROUP", 1000)
    parts = PartWriter(Folder(tmp_path), ORDERS, PARQUET, 2**20)
    for number in range(200):
        parts.write([[b"%d" % number, None]])
    [file] = parts.close()
    groups = parquet.read_metadata(tmp_path / file.name)
    assert 1 < groups.num_row_groups < 20
    assert file.rows == groups.num_rows == 200


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("../../etc/passwd", "shop.%2E%2E%2F%2E%2E%2Fetc%2Fpasswd.00001.jsonl.zst"),
        ("größe", "shop.gr%C3%B6%C3%9Fe.00001.jsonl.zst"),
        ("a_B-9", "shop.a_B-9.00001.jsonl.zst"),
    ],
)
def test_a_table_name_is_escaped_in_the_file_name(tmp_path: Path, name: str, file: str) -> None:
    parts = PartWriter(Folder(tmp_path), Table(schema="shop", name=name, columns=ORDERS.columns), JSONL, 1)
    parts.write([[b"1", None]])
    assert [found.name for found in parts.close()] == [file] == names_in(tmp_path)


def test_the_longest_table_names_give_different_file_names(tmp_path: Path) -> None:
    names = ["客" * 64, "客" * 63 + "户"]
    written = []
    for name in names:
        parts = PartWriter(Folder(tmp_path), Table(schema="店" * 64, name=name, columns=ORDERS.columns), JSONL, 1)
        parts.write([[b"1", None]])
        written += parts.close()
    assert len({file.name for file in written}) == 2


async def test_a_published_part_is_synced_and_then_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore(tmp_path)
    await store.add(manifest(DUMP, State.RUNNING))
    claim, _ = await store.claim(DUMP)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    parts = PartWriter(claim, ORDERS, JSONL, 1)
    parts.write([[b"1", None]])
    (file,) = parts.close()
    assert synced == [(tmp_path / DUMP / file.name).stat().st_ino, (tmp_path / DUMP).stat().st_ino]


def test_a_table_without_rows_has_no_file(tmp_path: Path) -> None:
    assert PartWriter(Folder(tmp_path), ORDERS, JSONL, 1).close() == []
    assert names_in(tmp_path) == []


def manifest(dump: str, state: State, age: int = 0) -> Manifest:
    return Manifest(id=dump, pipeline="shop", state=state, created=CREATED - timedelta(seconds=age))


def reopen(root: Path) -> FolderStore:
    store = FolderStore(root)
    store.open()
    return store


@pytest.mark.parametrize("state", [State.PENDING, State.RUNNING])
async def test_a_dump_that_has_not_ended_survives_a_restart(tmp_path: Path, state: State) -> None:
    """A worker takes it, or ends it when it is certain that no other replica takes it."""
    await FolderStore(tmp_path).add(manifest(DUMP, state))
    assert await reopen(tmp_path).get(DUMP) == manifest(DUMP, state)


async def test_a_complete_dump_survives_a_restart(tmp_path: Path) -> None:
    complete = manifest(DUMP, State.COMPLETE)
    await FolderStore(tmp_path).add(complete)
    assert await reopen(tmp_path).get(DUMP) == complete


async def test_an_interrupted_deletion_is_finished_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)
    await store.add(manifest(DUMP, State.COMPLETE))
    (tmp_path / DUMP / "shop.orders.00001.jsonl.zst").write_bytes(b"whole")

    def crash(_: Path) -> None:
        raise SystemExit

    monkeypatch.setattr(shutil, "rmtree", crash)
    await store.hide(DUMP)
    with pytest.raises(SystemExit):
        await store.remove(DUMP)
    monkeypatch.undo()
    (gone,) = names_in(tmp_path)
    assert gone == f".gone-{DUMP}"
    assert await reopen(tmp_path).get(DUMP) is None
    assert names_in(tmp_path) == []


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, nothing can be stored."""

    return lambda: monkeypatch.setattr(os, "fsync", no_space)


def no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_refused_dump_leaves_no_folder(tmp_path: Path, full: Callable[[], None]) -> None:
    store = reopen(tmp_path)
    full()
    with pytest.raises(StorageFull):
        await store.add(manifest(DUMP, State.PENDING))
    assert await store.newest_first() == []
    assert names_in(tmp_path) == []


async def test_a_dump_is_not_ended_before_its_files_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = reopen(tmp_path)
    await store.add(manifest(DUMP, State.RUNNING))
    claim, running = await store.claim(DUMP)
    await asyncio.to_thread((claim.folder / "shop.orders.00001.jsonl.zst").write_bytes, b"half")
    with monkeypatch.context() as patch, pytest.raises(StorageFull):
        patch.setattr(os, "fsync", no_space)
        await store.end(claim, running, State.FAILED, "the volume is full")
    assert await store.get(DUMP) == running
    assert not [name for name in names_in(claim.folder) if name.endswith(".zst")]
    ended = await store.end(claim, running, State.FAILED, "the volume is full")
    assert (ended.state, ended.error) == (State.FAILED, "the volume is full")
    assert await reopen(tmp_path).get(DUMP) == ended
    assert names_in(tmp_path / DUMP) == ["manifest.json"]


@both_formats
def test_a_part_that_does_not_fit_is_an_error_also_when_it_is_only_flushed(tmp_path: Path, kind: FileFormat) -> None:
    parts = PartWriter(Folder(tmp_path), ORDERS, kind, 3000)
    parts.write([[b"1", None]])
    assert parts._part
    file = parts._part.file
    file._file.close()
    file._file = Path("/dev/full").open("wb")  # noqa: SIM115 - `abandon` closes it
    with pytest.raises(StorageFull, match=r"shop\.orders\.00001\.[a-z.]+ needs \d+ bytes"):
        parts.close()
    parts.abandon()
    assert file.closed


@both_formats
def test_an_abandoned_part_is_closed(tmp_path: Path, kind: FileFormat) -> None:
    parts = PartWriter(Folder(tmp_path), ORDERS, kind, 3000)
    parts.write([[b"1", None]])
    assert parts._part
    file = parts._part.file
    parts.abandon()
    assert file.closed
    del parts
    gc.collect()


@pytest.mark.parametrize("damaged", [b'{"id": ', b'{"id": "\xff"}'])
async def test_a_damaged_manifest_is_an_error(tmp_path: Path, damaged: bytes) -> None:
    await FolderStore(tmp_path).add(manifest(DUMP, State.COMPLETE))
    (tmp_path / DUMP / "manifest.json").write_bytes(damaged)
    with pytest.raises(FatalError, match=rf"{DUMP}/manifest\.json: not a manifest"):
        reopen(tmp_path)


async def test_other_folders_in_the_storage_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir(mode=0)
    await FolderStore(tmp_path).add(manifest(DUMP, State.COMPLETE))
    shutil.copytree(tmp_path / DUMP, tmp_path / f"{DUMP}-copy")
    assert [found.id for found in await reopen(tmp_path).newest_first()] == [DUMP]
    assert len(names_in(tmp_path)) == 3


async def test_dumps_are_listed_newest_first(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for dump, age in (("b", 2), ("c", 1), ("a", 3)):
        await store.add(manifest(dump, State.COMPLETE, age))
    assert [found.id for found in await store.newest_first()] == ["c", "b", "a"]

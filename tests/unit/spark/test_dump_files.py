"""Files of dumps on their way into the lake."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from databus_core.errors import DiskUnavailable, DumpUnusable
from databus_core.events import Table
from databus_core.manifest import DumpFile, Manifest, State
from databus_spark.dump_files import download_file, files_of


class _FullDisk:
    async def download(self, dump: str, file: DumpFile, path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))


class _EmptyFolder:
    def size(self, name: str) -> None:
        return None


async def test_a_full_temporary_folder_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    manifest = Manifest(id="dump-1", pipeline="shop", state=State.COMPLETE, created=datetime.now(UTC))
    file = DumpFile(name="shop.items.00001.jsonl.zst", table="shop.items", rows=1, bytes=9, sha256="")
    api: Any = _FullDisk()
    folder: Any = _EmptyFolder()
    with pytest.raises(DiskUnavailable, match=rf"written to {tmp_path}/databus-.* \(No space left .*set TMPDIR"):
        await download_file(api, manifest, file, folder)


def test_values_that_are_not_exact_are_refused() -> None:
    file = DumpFile(name="shop.items.00001.jsonl.zst", table="shop.items", rows=1, bytes=9, sha256="", strict=True)
    table = Table(schema="shop", name="items", columns=(), primary_key=())
    manifest = Manifest(
        id="dump-1", pipeline="shop", state=State.COMPLETE, created=datetime.now(UTC), tables=(table,), files=(file,)
    )
    with pytest.raises(DumpUnusable, match=r"the rows of shop\.items were written with compat: strict"):
        files_of(manifest, table)

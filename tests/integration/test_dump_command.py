"""`databus dump`: take, list, show, download and delete dumps of a real dump API."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from common.connections import Execute
from databus_cli.__main__ import main
from databus_core.dump_client import DumpApi
from databus_core.errors import DumpUnusable
from integration.dump_api import Api, rows_of_json, serving

#: runs `databus dump`; returns exit code, standard output and standard error
Dump = Callable[..., Awaitable[tuple[int, str, str]]]

pytestmark = pytest.mark.parametrize("source", ["mariadb"], indirect=True)


@pytest.fixture
async def dump(
    api: Api, execute: Execute, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Dump]:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    await execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(500))")
    await execute("INSERT INTO a VALUES (1, REPEAT(MD5(1), 9)), (2, REPEAT(MD5(2), 9)), (3, REPEAT(MD5(3), 9))")
    await execute("CREATE TABLE b (id INT PRIMARY KEY)")
    await execute("INSERT INTO b VALUES (1)")
    async with serving(api) as url:

        async def run(*arguments: str) -> tuple[int, str, str]:
            code = await asyncio.to_thread(main, ["dump", *arguments, "--url", url])
            out, err = capfd.readouterr()
            return code, out, err

        yield run


async def test_a_dump_is_taken_listed_shown_and_deleted(dump: Dump, schema: str) -> None:
    code, out, err = await dump("create", "--wait", "--tables", f"{schema}.*")
    assert (code, err) == (0, "")
    name = out.strip()
    code, out, _ = await dump("list")
    [head, line] = out.splitlines()
    assert head.split()[:3] == ["dump", "state", "requested"]
    assert line.split()[:2] == [name, "complete"]
    assert "4 rows" in line
    _, out, _ = await dump("show", name)
    shown = dict(line.split(None, 1) for line in out.splitlines() if line)
    assert shown["state"] == "complete"
    assert shown["position"].startswith("binlog.")
    assert shown[f"{schema}.a"].startswith("3 ")
    assert shown[f"{schema}.b"].startswith("1 ")
    _, out, _ = await dump("show", name, "--json")
    assert json.loads(out)["id"] == name
    code, _, err = await dump("delete", "20200101T000000Z-dead", name)
    assert code == 1
    missing, deleted = err.splitlines()
    assert "404" in missing
    assert deleted == f"databus: dump {name} is deleted"
    assert (await dump("list"))[2] == "databus: no dumps\n"


async def test_a_download_continues_where_it_ended_and_repairs_what_is_damaged(
    dump: Dump, api: Api, schema: str, tmp_path: Path
) -> None:
    code, out, _ = await dump("create", "--wait", "--json")
    manifest = json.loads(out)
    code, out, err = await dump("download", manifest["id"])
    assert (code, out) == (0, "")
    assert err.startswith(f"databus: {manifest['id']}: 2 files, 4 rows")
    folder = Path(manifest["id"])
    file = next(each for each in manifest["files"] if each["table"] == f"{schema}.a")
    content = (folder / file["name"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == file["sha256"]
    assert [row[0] for row in rows_of_json(content)] == [b"1", b"2", b"3"]
    assert names_in(folder) == {*(each["name"] for each in manifest["files"]), "manifest.json"}

    begun, damaged = tmp_path / "begun", tmp_path / "damaged"
    for target, start in ((begun, content[:20]), (damaged, b"?" * 20)):
        target.mkdir()
        (target / f"{file['name']}.part").write_bytes(start)
        assert (await dump("download", manifest["id"], str(target), "--tables", f"{schema}.a"))[0] == 0
        assert (target / file["name"]).read_bytes() == content
        written = json.loads((target / "manifest.json").read_text())
        assert [each["name"] for each in written["files"]] == [file["name"]]
        assert [each["name"] for each in written["tables"]] == ["a"]


async def test_a_dump_is_leased_while_it_is_downloaded(dump: Dump, monkeypatch: pytest.MonkeyPatch) -> None:
    _, out, _ = await dump("create", "--wait")
    refusals, original = [], DumpApi.download

    async def download(self: DumpApi, name: str, *arguments: Any) -> None:
        with pytest.raises(DumpUnusable) as refused:
            await self.delete(name)
        refusals.append(str(refused.value))
        await original(self, name, *arguments)

    monkeypatch.setattr(DumpApi, "download", download)
    assert (await dump("download", out.strip()))[0] == 0
    assert len(refusals) == 2
    assert all("409" in refusal for refusal in refusals)
    assert (await dump("delete", out.strip()))[0] == 0


async def test_what_cannot_be_downloaded_is_named(dump: Dump, api: Api, schema: str) -> None:
    _, out, _ = await dump("create", "--wait", "--tables", f"{schema}.b")
    name = out.strip()
    assert "has no files in format parquet" in (await dump("download", name, "--format", "parquet"))[2]
    assert "has none of the selected tables" in (await dump("download", name, "--tables", f"{schema}.a"))[2]
    code, _, err = await dump("download", "20200101T000000Z-dead")
    assert code == 1
    assert "404" in err
    code, _, err = await dump("create", "--wait", "--tables", "nothing.here")
    assert code == 1
    assert "422" in err


def names_in(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}

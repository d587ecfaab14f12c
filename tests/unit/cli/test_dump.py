"""The rows of a dump's files as the formats get them, and the errors of `databus dump messages`."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import msgspec
import pytest
import zstandard

from databus_binlog import Position
from databus_cli.__main__ import main
from databus_core.dump_client import DumpApi
from databus_core.errors import DumpApiUnavailable, DumpUnusable
from databus_core.events import Action, Column, Row, Table
from databus_core.manifest import DumpFile, FileFormat, Manifest, State
from databus_messages.formats.base import SnapshotRows
from databus_messages.formats.databus import Encoder
from databus_messages.snapshots import snapshots

COLUMNS = (Column(name="id", type="int", raw_type="int(11)"), Column(name="v", type="blob", raw_type="blob"))
EMPTY, ITEMS, NOTES = (Table(schema="shop", name=name, columns=COLUMNS) for name in ("empty", "items", "notes"))
DUMP = Manifest(
    id="20261121T115346Z-3f2a",
    pipeline="p",
    state=State.COMPLETE,
    created=datetime(2026, 11, 21, 11, 53, 46, 123457, tzinfo=UTC),
    position=Position(file="mysql-bin.000007", offset=707),
    tables=(EMPTY, ITEMS, NOTES),
)


class Folder:
    """The files of a dump on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: list[DumpFile] = []
        #: names of the files that were read
        self.read: list[str] = []

    def add(self, table: Table, *lines: list[Row]) -> None:
        """Write a file with these lines, each a list of rows."""
        name, encoder = f"{len(self.files)}.zst", Encoder()
        content = b"".join(encoder.rows_value(table, Action.INSERT, rows) + b"\n" for rows in lines)
        (self.path / name).write_bytes(zstandard.compress(content))
        rows = sum(map(len, lines))
        self.files.append(DumpFile(name=name, table=f"shop.{table.name}", rows=rows, bytes=0, sha256=""))

    @asynccontextmanager
    async def fetch(self, file: DumpFile) -> AsyncIterator[Path]:
        self.read.append(file.name)
        yield self.path / file.name

    async def rows_of(self, *tables: Table) -> list[SnapshotRows]:
        manifest = msgspec.structs.replace(DUMP, tables=tables, files=tuple(self.files))
        return [snapshot async for snapshot in snapshots(manifest, tables, self.fetch)]


def marks(snapshot: SnapshotRows) -> str:
    names = ("first", "first_of_table", "last_of_table", "last")
    return " ".join([snapshot.table.name, *(name for name in names if getattr(snapshot, name))])


async def test_each_line_gives_its_rows_with_the_position_and_time_of_the_dump(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    one, two, three, four = ([b"%d" % number, None if number % 2 else b"\0\xff"] for number in range(4))
    folder.add(ITEMS, [one, two], [three])
    folder.add(ITEMS, [four])
    folder.add(NOTES, [one])
    found = await folder.rows_of(EMPTY, ITEMS, NOTES)
    assert [marks(snapshot) for snapshot in found] == [
        "empty first_of_table last_of_table",
        "items first first_of_table",
        "items",
        "items last_of_table",
        "notes first_of_table last_of_table last",
    ]
    assert [snapshot.rows for snapshot in found] == [[], [one, two], [three], [four], [one]]
    assert {snapshot.time_us for snapshot in found} == {1795262026123457}
    assert {snapshot.position.offset for snapshot in found} == {707}


async def test_first_and_last_refer_to_the_selected_tables(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.add(ITEMS, [[b"1", None]])
    folder.add(NOTES, [[b"1", None]])
    assert [marks(snapshot) for snapshot in await folder.rows_of(NOTES, EMPTY)] == [
        "notes first first_of_table last_of_table last",
        "empty first_of_table last_of_table",
    ]
    assert folder.read == ["1.zst"]
    assert [marks(snapshot) for snapshot in await folder.rows_of(EMPTY)] == [
        "empty first first_of_table last_of_table last"
    ]


async def test_tables_with_the_same_dotted_name_are_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.add(ITEMS, [[b"1", None]])
    dotted, same = (
        msgspec.structs.replace(ITEMS, schema=schema, name=name) for schema, name in (("a.b", "c"), ("a", "b.c"))
    )
    with pytest.raises(DumpUnusable, match=r"two tables named a\.b\.c"):
        await folder.rows_of(dotted, same)


def test_a_manifest_of_an_earlier_version_has_json_lines() -> None:
    described = msgspec.to_builtins(DUMP) | {"format": "databus.jsonl.zst"}
    del described["formats"]
    file = {"name": "a", "table": "shop.items", "rows": 1, "bytes": 1, "sha256": ""}
    manifest = msgspec.convert(described | {"files": [file]}, Manifest)
    [[found]] = manifest.files_of([ITEMS], FileFormat.JSONL)
    assert found.name == "a"


async def test_a_dump_without_json_lines_is_refused() -> None:
    manifest = msgspec.structs.replace(DUMP, formats=(FileFormat.PARQUET,))
    with pytest.raises(DumpUnusable, match=r"no files in format jsonl: add it to dumps\.formats"):
        await anext(snapshots(manifest, [ITEMS], Folder(Path()).fetch))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--option", "nope=1"], "format maxwell-json has no option nope"),
        ([], "(check dumps.url)"),
    ],
)
def test_an_unknown_option_and_an_unreachable_dump_api_are_reported_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as unused:  # bound, but not listening
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert main(["dump", "messages", DUMP.id, "--format", "maxwell-json", "--url", url, *arguments]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


async def test_an_error_without_a_text_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def request(*_: object, **__: object) -> None:
        raise httpx.ReadTimeout("")

    monkeypatch.setattr(httpx.AsyncClient, "request", request)
    async with DumpApi("http://localhost") as api:
        with pytest.raises(DumpApiUnavailable, match="ReadTimeout"):
            await api.dumps()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["../x", "--format", "dip"], "'../x' is not the id of a dump"),
        (["x", "--format", "dip", "--url", "here"], "'here' is not a URL"),
    ],
)
def test_a_wrong_argument_is_refused(arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["dump", "messages", *arguments])
    assert error in capsys.readouterr().err

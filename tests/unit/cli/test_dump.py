"""A dump's rows in all formats, and the command's errors."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import zstandard

from databus.errors import DumpUnusable
from databus.events import Action, Column, Row, Table
from databus.manifest import DumpFile, Manifest, State
from databus_binlog import Position
from databus_cli.__main__ import main
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
    """The files of a dump on disk; remembers which were read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: list[DumpFile] = []
        self.read: list[str] = []

    def add(self, table: Table, *lines: list[Row]) -> None:
        """Write a file of these lines."""
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
    places = ("first", "first_of_table", "last_of_table", "last")
    return " ".join([snapshot.table.name, *(place for place in places if getattr(snapshot, place))])


async def test_each_line_is_a_snapshot_with_its_position(tmp_path: Path) -> None:
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


async def test_first_and_last_are_those_of_the_printed_tables(tmp_path: Path) -> None:
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


async def test_tables_that_a_dump_calls_the_same_are_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.add(ITEMS, [[b"1", None]])
    dotted, same = (
        msgspec.structs.replace(ITEMS, schema=schema, name=name) for schema, name in (("a.b", "c"), ("a", "b.c"))
    )
    with pytest.raises(DumpUnusable, match=r"two tables named a\.b\.c"):
        await folder.rows_of(dotted, same)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--option", "nope=1"], "format maxwell-json has no option nope"),
        ([], "(check dumps.url)"),
    ],
)
def test_an_impossible_request_is_reported_in_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as nobody:  # bound, and not listening
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        assert main(["dump", "messages", DUMP.id, "--format", "maxwell-json", "--url", url, *arguments]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["../x", "--format", "dip"], "'../x' is not the id of a dump"),
        (["x", "--format", "dip", "--url", "here"], "'here' is not a URL"),
    ],
)
def test_wrong_usage_is_refused(arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["dump", "messages", *arguments])
    assert error in capsys.readouterr().err

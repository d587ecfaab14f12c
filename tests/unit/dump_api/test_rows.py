"""Tables that several views read at the same time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from common.dump_output import Folder
from common.waiting import eventually
from databus_binlog.row_batch import RowBatch
from databus_changes.snapshot.limits import ReadLimits
from databus_changes.snapshot.ranges import KeyRange
from databus_core.errors import SourceUnavailable
from databus_core.events import Column, Table
from databus_core.manifest import DumpFile
from databus_core.settings import Settings
from databus_core.settings.rules import Rule
from databus_dump_api import rows
from databus_dump_api.progress import Progress
from databus_dump_api.rows import write_tables
from databus_dump_api.table_copy import TableCopy
from databus_dump_api.tables import PublishedTable, TableState

SETTINGS = Settings.model_validate({"name": "shop", "dumps": {"formats": ["jsonl", "parquet"], "part_size": 4000}})


class FakeView:
    """Returns three batches of a row for each SELECT, and notes what happens. `step` is called before each batch."""

    def __init__(self, step: Callable[[], Any]) -> None:
        self._step = step
        self.selects: list[str] = []
        self.closed = self.released = 0

    async def batches(self, select: Any) -> AsyncIterator[RowBatch]:
        self.selects.append(select.sql)
        try:
            for number in range(3):
                await self._step()
                packed = msgspec.msgpack.encode([[b"%d" % number]])
                yield RowBatch(packed, 1, 1)
        finally:
            self.closed += 1

    async def release_table(self) -> None:
        self.released += 1


def copy_of(folder: Path, name: str, ranges: list[KeyRange]) -> TableCopy:
    column = Column(name="id", type="int", raw_type="int(11)")
    table = Table(schema="shop", name=name, columns=(column,), primary_key=(0,))
    state = TableState(table, "", 6, 100)
    copy = TableCopy(SETTINGS.dumps, Folder(folder), state, PublishedTable(SETTINGS, Rule(match=["*.*"]), table))
    copy.ranges = ranges
    return copy


async def write(tables: list[TableCopy], *views: FakeView) -> list[DumpFile]:
    limits = ReadLimits(SETTINGS.source, "dumps", rows_per_second=None, replica_lag=0)
    return await write_tables(tables, cast(Any, views), cast(Any, None), limits, Progress())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables of which it was checked that DDL has not changed them."""
    names: list[str] = []

    async def note(_: object, state: TableState) -> None:
        names.append(state.table.name)

    monkeypatch.setattr(rows, "require_unchanged", note)
    return names


async def test_files_are_listed_by_table_format_and_range(tmp_path: Path, checked: list[str]) -> None:
    turns = [asyncio.Semaphore(0), asyncio.Semaphore(0)]
    views = [FakeView(turn.acquire) for turn in turns]
    tables = [copy_of(tmp_path, "a", [KeyRange(high=7), KeyRange(low=7)]), copy_of(tmp_path, "b", [KeyRange()])]
    for _ in range(6):  # the second view reads the second range, and then the other table
        turns[1].release()
    writing = asyncio.create_task(write(tables, *views))

    async def second_view_is_ready() -> bool:
        return views[1].released == 2

    await eventually(second_view_is_ready)
    assert checked == ["b"]
    for _ in range(3):
        turns[0].release()
    files = await writing
    assert [file.name for file in files] == [
        "shop.a.00001.00001.jsonl.zst",
        "shop.a.00002.00001.jsonl.zst",
        "shop.a.00001.00001.parquet",
        "shop.a.00002.00001.parquet",
        "shop.b.00001.jsonl.zst",
        "shop.b.00001.parquet",
    ]
    assert {file.rows for file in files} == {3}
    assert names_in(tmp_path) == sorted(file.name for file in files)
    assert checked == ["b", "a"]
    assert [" WHERE `id` >= 7" in select for select in views[1].selects] == [True, False]


async def test_an_error_of_one_view_interrupts_the_others(tmp_path: Path, checked: list[str]) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise SourceUnavailable("gone")

    failing, waiting = FakeView(fail), FakeView(asyncio.Event().wait)
    with pytest.raises(SourceUnavailable, match="gone"):
        await write([copy_of(tmp_path, "a", [KeyRange()]), copy_of(tmp_path, "b", [KeyRange()])], waiting, failing)
    assert (waiting.closed, failing.closed) == (1, 1)
    assert checked == []


async def test_rows_are_read_within_the_limits(tmp_path: Path, checked: list[str]) -> None:
    class Counting(ReadLimits):
        rows = 0

        def count(self, rows: int) -> None:
            self.rows += rows

        async def wait(self) -> None:
            waited.append(self.rows)

    waited: list[int] = []
    limits = Counting(SETTINGS.source, "dumps", rows_per_second=1, replica_lag=0)
    view = FakeView(lambda: asyncio.sleep(0))
    tables = [copy_of(tmp_path, "a", [KeyRange()]), copy_of(tmp_path, "b", [KeyRange()])]
    await write_tables(tables, cast(Any, [view]), cast(Any, None), limits, Progress())
    assert waited == [3, 6]
    assert checked == ["a", "b"]

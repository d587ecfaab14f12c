"""A table that is loaded, and what a loader delivers of it."""

import asyncio
from collections.abc import Iterable

import msgspec

from databus_binlog import Position
from databus_binlog.row_batch import RowBatch
from databus_changes.snapshot.chunks import Chunk
from databus_changes.snapshot.keys import ChunkKey
from databus_core.events import Action, Begin, Column, Commit, RowsEvent, Table
from databus_core.settings import Settings
from databus_core.table_states import Backfill, BackfillProgress, TableStates
from databus_reader.backfill.limits import Limits
from databus_reader.backfill.window import Definition

COLUMNS = (
    Column(name="id", type="int", raw_type="int"),
    Column(name="code", type="varchar", raw_type="varchar(9)", charset="utf8mb4"),
)
TABLE = Table(schema="shop", name="t", columns=COLUMNS, primary_key=(0,), charset="utf8mb4")
OTHER = msgspec.structs.replace(TABLE, name="u")
NAME = TABLE.schema, TABLE.name
PLACE = "log.000001", 500


class EmptyPipe:
    """A pipe whose entries are published at once."""

    async def backlog(self) -> int:
        return 0


def limits_of(chosen: Settings) -> Limits:
    return Limits(chosen, EmptyPipe())  # type: ignore[arg-type]


def settings(**sections: object) -> Settings:
    return Settings(**{"name": "p", "source": {"include": ["shop.*"]}} | sections)


def key(*names: str, signature: tuple[str, ...] = ("id int",)) -> ChunkKey:
    positions = tuple(i for i, column in enumerate(COLUMNS) if column.name in (names or ("id",)))
    columns = tuple(COLUMNS[each] for each in positions)
    return ChunkKey("PRIMARY", positions, columns, (False,) * len(columns), signature)


def definition(found: ChunkKey | None = key()) -> Definition:  # noqa: B008 - it is frozen
    return Definition(TABLE, found, 10, 1000)


def packed(ids: Iterable[int]) -> bytes:
    return msgspec.msgpack.encode([[str(i).encode(), b"c%d" % i] for i in ids])


def batch(*ids: int) -> RowBatch:
    return RowBatch(packed(ids), len(ids), 10 * len(ids))


def chunk(*batches: RowBatch, last: bool = False, by: ChunkKey = key()) -> Chunk:  # noqa: B008 - it is frozen
    ends = msgspec.msgpack.decode(batches[-1].rows)[-1][:1] if batches else None
    return Chunk(TABLE, by, batches, tuple(ends) if ends else None, last)


def changed(*ids: int, action: Action = Action.UPDATE) -> RowsEvent:
    return RowsEvent(TABLE.fingerprint, action, 0, 4, 14, msgspec.Raw(packed(ids)))


def ids(batches: Iterable[RowBatch]) -> list[int]:
    return [int(row[0]) for each in batches for row in msgspec.msgpack.decode(each.rows)]


def states(*backfills: Backfill, **progress: BackfillProgress) -> TableStates:
    return TableStates({each.id: each for each in backfills}, progress)


class Stream:
    """Stands for the translation: begins and ends transactions at `place`."""

    def __init__(self) -> None:
        self.place: tuple[str, int] | None = PLACE
        self.own = self.definitions = self
        self.transaction = 0
        self.emitted: list[str] = []

    def begin(self) -> Begin:
        self.transaction += 1
        return Begin(self.transaction, "", PLACE[0], 0, 0, 0, PLACE[1], PLACE[1])

    def commit(self) -> Commit:
        return Commit("", *PLACE, None, PLACE[1])

    def emit(self, table: Table, out: list[object]) -> None:
        if table.name not in self.emitted:
            self.emitted.append(table.name)
            out.append(table.name)

    def adopt(self, table: Table) -> Table:
        return table


BOUNDARY = Position("", *PLACE)


async def turn() -> None:
    """Let the other tasks run until they wait."""
    for _ in range(5):
        await asyncio.sleep(0)

"""The part of the stream in which a chunk is read: from a boundary before its read view to one after it.

A row of the chunk that has not changed in the window is the row at the window's end. A row that has changed is left
out: its change is in the stream already.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from databus_binlog import Position
from databus_binlog.row_batch import RowBatch
from databus_changes.place import Place, reached
from databus_changes.snapshot.chunks import Chunk
from databus_changes.snapshot.keys import ChunkKey, KeyValues, key_of
from databus_core.errors import FatalError
from databus_core.events import Row, RowsEvent, Table

#: a window with more changed rows is given up, and its chunk is read again
_MOST_KEYS = 500_000


@dataclass(frozen=True)
class Definition:
    """A table as the database shows it."""

    table: Table
    #: None if the table cannot be read in chunks
    key: ChunkKey | None
    #: number of rows, and bytes of data, as the database estimates them
    rows: int
    data_bytes: int

    @property
    def row_bytes(self) -> int:
        """Average size of a row; 0 if it is not known."""
        return self.data_bytes // self.rows if self.rows else 0


@dataclass(frozen=True)
class WholeTable:
    """A read view of a table that cannot be read in chunks. The stream waits at the view's place until it is read."""

    table: Table
    #: place of the view
    place: Place
    batches: AsyncIterator[RowBatch]


#: what was read in a window, or why it could not be read
Result: TypeAlias = Definition | Chunk | WholeTable | FatalError


class Window:
    """A window that a loader has requested. The stream opens it and closes it, at boundaries."""

    def __init__(self, *, holds: bool = False) -> None:
        """With `holds`, the stream waits at the window's start until the result is known."""
        loop = asyncio.get_running_loop()
        self._holds = holds
        #: the boundary at which it was opened; None: it was given up before
        self.start: asyncio.Future[Position | None] = loop.create_future()
        #: whether its result is in the stream; False: it was given up
        self.closed: asyncio.Future[bool] = loop.create_future()
        self.result: Result | None = None
        #: set when there is a result, or will be none
        self.known = asyncio.Event()
        #: end of the log after the result was read
        self._end: Place = ("", 0)
        #: names of key columns → keys of the rows that have changed
        self._changed: dict[tuple[str, ...], set[KeyValues]] = {}

    @property
    def is_open(self) -> bool:
        """Whether it is open: changes of the table have to be reported to it."""
        return self.start.done() and not self.closed.done()

    @property
    def holds_stream(self) -> bool:
        """Whether the stream must not go on."""
        return self._holds and self.is_open and not self.known.is_set()

    def deliver(self, result: Result, end: Place) -> None:
        """Set what was read, and the end of the log after that."""
        self.result, self._end = result, end
        self.known.set()

    def may_close(self, place: Place) -> bool:
        """Return whether the stream, at this place, has everything that the result may contain."""
        return self.result is not None and self.is_open and reached(place, self._end)

    def open(self, boundary: Position) -> None:
        """Open the window at a boundary, unless it is open."""
        if not self.start.done():
            self.start.set_result(boundary)

    def is_exact(self, place: Place) -> bool:
        """Return whether the table is certainly the same at this place, after the end, as in the result."""
        return place == self._end or not self._changed

    def give_up(self) -> None:
        """Close the window without its result."""
        self.known.set()
        if not self.start.done():
            self.start.set_result(None)
        if not self.closed.done():
            self.closed.set_result(False)

    def collect(self, event: RowsEvent, table: Table) -> bool:
        """Remember the keys of changed rows. Return False if there are too many: the window has to be given up."""
        positions = table.row_key
        names = tuple(table.columns[position].name for position in positions)
        changed = self._changed.setdefault(names, set())
        changed.update(key_of(row, positions) for row in _decode_images(event.rows))
        return len(changed) <= _MOST_KEYS

    def unchanged(self, chunk: Chunk) -> Iterable[RowBatch] | None:
        """Return the chunk without the rows that have changed; None if they were identified by another key."""
        if not self._changed:
            return chunk.batches
        if self._changed.keys() != {chunk.key.names}:
            return None
        return _without(chunk.batches, chunk.key.positions, self._changed[chunk.key.names])


def _without(batches: Iterable[RowBatch], positions: Sequence[int], changed: set[KeyValues]) -> Iterable[RowBatch]:
    for batch in batches:
        rows = _decode_rows(batch.rows)
        kept = [row for row in rows if key_of(row, positions) not in changed]
        if len(kept) == len(rows):
            yield batch
        elif kept:
            yield RowBatch(_encode_rows(kept), len(kept), batch.size)


_decode_rows = msgspec.msgpack.Decoder(list[Row]).decode
#: images may lack values, but not those of the key
_decode_images = msgspec.msgpack.Decoder(list[list[bytes | bool | None]]).decode
_encode_rows = msgspec.msgpack.Encoder().encode

"""Reads one table in chunks along its key. Each chunk is a short SELECT, which locks nothing.

The number of rows of a chunk is chosen so that it has about 384 KiB, estimated from
the row size of the previous chunk.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from databus_binlog.row_batch import RowBatch
from databus_binlog.session import Session
from databus_changes.snapshot.keys import ChunkKey, KeyValues, key_of
from databus_changes.snapshot.select import conversions, quoted, quoted_name, select_list
from databus_core.events import Row, Table

#: bytes of values that a chunk should have. The stream waits while one is published, so a chunk is soon published.
_CHUNK_BYTES = 384 * 1024
_MOST_ROWS = 20_000
#: how many rows the first chunk has, if the database does not tell how large rows are
_FIRST_ROWS = 1000
#: A chunk whose rows are larger than expected is cut off here. The rest is read with the next one.
_MOST_BYTES = 8 * _CHUNK_BYTES
_decode_rows = msgspec.msgpack.Decoder(list[Row]).decode


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a table."""

    table: Table
    key: ChunkKey
    batches: Sequence[RowBatch]
    #: key of the last row; None if there are no rows
    last_key: KeyValues | None
    #: whether there are no rows after these
    is_last: bool

    @property
    def count(self) -> int:
        """Number of rows."""
        return sum(batch.count for batch in self.batches)


class ChunkReader:
    """Reads the chunks of one definition of a table. `where` is an SQL condition of the rows to read, or empty."""

    def __init__(self, table: Table, key: ChunkKey, where: str, row_bytes: int) -> None:
        self.table = table
        self._key = key
        self._where = where
        self._limit = _rows_for(row_bytes) if row_bytes else _FIRST_ROWS

    async def read(self, session: Session, after: KeyValues | None, limit: int) -> Chunk:
        """Read the rows after a key (None: from the start), at most `limit`, in a session of `connect_snapshot`."""
        limit = min(limit, self._limit)
        conditions = [self._key.after(after)] if after is not None else []
        if not self._where:
            return await self._rows(session, conditions, limit)
        # A condition may select few rows, so the chunk is bounded by the rows that are examined.
        upper = await self._upper_bound(session, conditions, limit)
        if upper is not None:
            conditions.append(self._key.up_to(upper))
        found = await self._rows(session, [*conditions, f"({self._where}\n)"], None)
        last_key = upper if found.is_last else found.last_key
        return Chunk(self.table, self._key, found.batches, last_key, found.is_last and upper is None)

    async def _rows(self, session: Session, conditions: Sequence[str], limit: int | None) -> Chunk:
        sql = self._sql(self.table, conditions) + (f" LIMIT {limit}" if limit else "")
        batches: list[RowBatch] = []
        size = count = 0
        cut = False
        async with aclosing(session.select(sql, conversions(self.table))) as found:
            async for batch in found:
                cut = size > _MOST_BYTES
                if not cut:
                    batches.append(batch)
                    size += batch.size
                    count += batch.count
        if count:
            self._limit = _rows_for(size // count)
        last_key = key_of(_last_row(batches[-1]), self._key.positions) if batches else None
        return Chunk(self.table, self._key, batches, last_key, not cut and (limit is None or count < limit))

    async def _upper_bound(self, session: Session, conditions: Sequence[str], limit: int) -> KeyValues | None:
        """Return the key of the row that is `limit` rows ahead; None if there are not that many."""
        keys = replace(self.table, columns=self._key.columns, primary_key=(), indexes=())
        sql = f"{self._sql(keys, conditions)} LIMIT {limit - 1}, 1"
        async with aclosing(session.select(sql, conversions(keys))) as found:
            rows = [_last_row(batch) async for batch in found]
        return key_of(rows[0], range(len(keys.columns))) if rows else None

    def _sql(self, table: Table, conditions: Sequence[str]) -> str:
        """Build the SELECT of a table's columns, in the order of the key."""
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        source = f"{quoted_name(table)} FORCE INDEX ({quoted(self._key.index)}){where}"
        return f"SELECT {select_list(table)} FROM {source} ORDER BY {self._key.order}"  # noqa: S608 - names are quoted


async def whole_table(session: Session, table: Table, where: str) -> AsyncIterator[RowBatch]:
    """Read all rows of a table, in a session with an open view."""
    condition = f" WHERE ({where}\n)" if where else ""
    sql = f"SELECT {select_list(table)} FROM {quoted_name(table)}{condition}"  # noqa: S608 - names are quoted
    async with aclosing(session.select(sql, conversions(table))) as batches:
        async for batch in batches:
            yield batch


def _last_row(batch: RowBatch) -> Row:
    return _decode_rows(batch.rows)[-1]


def _rows_for(row_bytes: int) -> int:
    return max(1, min(_MOST_ROWS, _CHUNK_BYTES // max(1, row_bytes)))

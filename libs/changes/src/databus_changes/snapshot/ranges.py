"""Divides a table into ranges of its primary key, which several sessions can read at the same time.

The key must begin with an integer column. A range of its values that has too many rows, as the server estimates from
its index, is halved. So gaps in the values do not matter. Ranges need not be exact: together they have every row once.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise

from databus_binlog.session import Session
from databus_changes.snapshot.select import quoted, quoted_name
from databus_core.events import Column, Table

_INTEGERS = {"tinyint", "smallint", "mediumint", "int", "bigint"}
#: where EXPLAIN has the estimated number of rows
_ROWS_COLUMN = {"mariadb": -2, "mysql": -3}
#: After so many estimates, some seconds, ranges are not halved any more: they may be wrong for all we know.
_MOST_ESTIMATES = 20_000


@dataclass(frozen=True)
class KeyRange:
    """Values of the leading key column from `low` to below `high`; None: there is no limit."""

    low: int | None = None
    high: int | None = None

    def condition(self, table: Table) -> str:
        """Return the SQL condition of the rows; empty for all."""
        column = leading_integer(table)
        name = quoted(column.name) if column else ""
        limits = [(">=", self.low), ("<", self.high)]
        return " AND ".join(f"{name} {operator} {limit}" for operator, limit in limits if limit is not None)


async def key_ranges(session: Session, table: Table, rows: int) -> list[KeyRange]:
    """Return ranges of about `rows` rows, in the order of the key; one of all rows if the table has no such key."""
    column = leading_integer(table)
    if column is None:
        return [KeyRange()]
    name = quoted(column.name)
    source = f"{quoted_name(table)} USE INDEX (PRIMARY)"  # MySQL makes no estimate with FORCE INDEX
    await session.query("SET SESSION sql_notes = 0")  # otherwise it sends the query back as a warning
    [(low, high)] = await session.query(f"SELECT MIN({name}), MAX({name}) FROM {source}")  # noqa: S608 - quoted
    if low is None:
        return [KeyRange()]
    starts: list[int] = []
    size = rows
    async for start, estimate in _pieces(session, source, name, (int(low), int(high)), rows):
        size += estimate
        if size > rows:
            starts.append(start)
            size = estimate
    return [KeyRange(low, high) for low, high in pairwise([None, *starts[1:], None])]


def leading_integer(table: Table) -> Column | None:
    """Return the first column of a table's primary key, if it is an integer."""
    column = table.columns[table.primary_key[0]] if table.primary_key else None
    return column if column and column.type in _INTEGERS else None


async def _pieces(
    session: Session, source: str, name: str, values: tuple[int, int], rows: int
) -> AsyncIterator[tuple[int, int]]:
    """Yield pieces of at most about `rows` rows, in order: the first value, and the estimated number of rows."""
    pending, estimates = [values], 0
    while pending:
        low, high = pending.pop()
        sql = f"EXPLAIN FORMAT=TRADITIONAL SELECT * FROM {source} WHERE {name} BETWEEN {low} AND {high}"  # noqa: S608 - name is quoted
        [plan] = await session.query(sql)
        estimate = int(plan[_ROWS_COLUMN[session.server.flavor]] or 0)
        estimates += 1
        if estimate <= rows or low == high or estimates >= _MOST_ESTIMATES:
            yield low, estimate
            continue
        middle = (low + high) // 2
        pending += [(middle + 1, high), (low, middle)]

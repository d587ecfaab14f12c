"""Compare a source table with its mirror in the lake, row by row, with a Delta reader that the sink does not use."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder

from devstack.demo.shop import SCHEMA, connect
from devstack.server import Server

#: code of the type BIT, whose values the driver returns as bytes
_BIT = 16
Rows = dict[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Comparison:
    """The number of differences between a table and its mirror in the lake; rows are matched by primary key."""

    table: str
    #: rows of the table
    rows: int
    #: rows that only the table has
    missing: int
    #: rows that only the mirror has, and further copies of rows that both have
    invented: int
    #: rows that both have, with different values
    different: int

    @property
    def equal(self) -> bool:
        """Whether there are no differences."""
        return not (self.missing or self.invented or self.different)


async def compare(
    source: Server,
    lake: Path,
    table: str,
    schema: str = SCHEMA,
    read: Callable[[Path], list[dict[str, Any]]] | None = None,
) -> Comparison:
    """Read all rows and columns on both sides and compare them; `read` reads a mirror, by default delta-rs does."""
    connection = await connect(source)
    async with connection, connection.cursor() as cursor:
        await cursor.execute("SET time_zone = '+00:00'")
        await cursor.execute(f"SHOW KEYS FROM `{schema}`.`{table}` WHERE Key_name = 'PRIMARY'")
        key_columns = [row[4] for row in await cursor.fetchall()]
        await cursor.execute(f"SELECT * FROM `{schema}`.`{table}`")
        names = [column[0] for column in cursor.description]
        bits = {column[0] for column in cursor.description if column[1] == _BIT}
        rows = [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]
    for row in rows:
        row.update({name: int.from_bytes(row[name]) for name in bits if row[name] is not None})
    source_rows = _by_key(key_columns, rows)
    mirror = (read or read_mirror)(lake / "mirror" / schema / table)
    mirror_rows = _by_key(key_columns, mirror)
    return Comparison(
        table=table,
        rows=len(source_rows),
        missing=len(source_rows.keys() - mirror_rows.keys()),
        invented=len(mirror_rows.keys() - source_rows.keys()) + len(mirror) - len(mirror_rows),
        different=sum(source_rows[key] != mirror_rows[key] for key in source_rows.keys() & mirror_rows.keys()),
    )


def count_changes(lake: Path) -> dict[str, int]:
    """Count the row images of each table in the change log."""
    query = "SELECT _table, COUNT(*) FROM t WHERE _query IS NULL GROUP BY _table"
    batch = QueryBuilder().register("t", DeltaTable(lake / "changes")).execute(query).read_all()
    tables, counts = (column.to_pylist() for column in batch.columns)
    return {str(table): int(number) for table, number in zip(tables, counts, strict=True)}


def read_mirror(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a mirror, without the column `_seq`."""
    batch = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t").read_all()
    columns = [column.to_pylist() for column in batch.columns]
    rows = (dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True))
    return [{name: value for name, value in row.items() if name != "_seq"} for row in rows]


def _by_key(key_columns: list[str], rows: Iterable[dict[str, Any]]) -> Rows:
    plain = ({name: _plain(value) for name, value in row.items()} for row in rows)
    return {tuple(row[name] for name in key_columns): row for row in plain}


def _plain(value: Any) -> Any:
    """Convert values that the database and the lake return in different types: integers, and times of some kinds."""
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, timedelta):
        seconds = abs(int(value.total_seconds()))
        return f"{'-' * (value < timedelta())}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return value

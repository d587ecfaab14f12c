"""Compare a source table with its mirror in the lake, row by row, with a reader that has no part in writing it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder

from devstack.demo.shop import SCHEMA, connect
from devstack.server import Server

Rows = dict[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Comparison:
    """How a mirror differs from its table; rows are told by primary key."""

    table: str
    rows: int
    missing: int
    invented: int
    different: int

    @property
    def equal(self) -> bool:
        """Whether the two are the same."""
        return not (self.missing or self.invented or self.different)


async def compare(source: Server, lake: Path, table: str) -> Comparison:
    """Read both sides and compare them, columns and all."""
    connection = await connect(source)
    async with connection, connection.cursor() as cursor:
        await cursor.execute(f"SHOW KEYS FROM {SCHEMA}.{table} WHERE Key_name = 'PRIMARY'")
        key = [row[4] for row in await cursor.fetchall()]
        await cursor.execute(f"SELECT * FROM {SCHEMA}.{table}")
        names = [column[0] for column in cursor.description]
        here = _by_key(key, (dict(zip(names, row, strict=True)) for row in await cursor.fetchall()))
    there = _by_key(key, _mirrored(lake / "mirror" / SCHEMA / table))
    return Comparison(
        table=table,
        rows=len(here),
        missing=len(here.keys() - there.keys()),
        invented=len(there.keys() - here.keys()),
        different=sum(here[row] != there[row] for row in here.keys() & there.keys()),
    )


def count(path: Path) -> int:
    """Count the rows of a table in the lake; 0 where there is none yet."""
    if not DeltaTable.is_deltatable(str(path)):
        return 0
    (column,) = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT COUNT(*) FROM t").read_all().columns
    return int(column.to_pylist()[0])


def _mirrored(path: Path) -> Iterable[dict[str, Any]]:
    batch = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t").read_all()
    columns = [column.to_pylist() for column in batch.columns]
    return (dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True))


def _by_key(key: list[str], rows: Iterable[dict[str, Any]]) -> Rows:
    plain = ({name: _plain(value) for name, value in row.items()} for row in rows)
    return {tuple(row[name] for name in key): row for row in plain}


def _plain(value: Any) -> Any:
    """Give one form to values that the two readers type differently: numbers, and times of a zone."""
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value

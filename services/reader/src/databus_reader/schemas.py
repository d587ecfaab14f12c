"""The table behind a row: names, signedness, charsets, labels and the key come from the binlog itself.

What the binlog does not say (display widths, AUTO_INCREMENT, secondary indexes) is taken from information_schema where
that still describes the very same columns; it decorates the messages and never changes how a row is read.
"""

import re
from collections.abc import Awaitable, Callable

from databus.declared import described_by
from databus.errors import SchemaMismatch
from databus.events import Column, Table
from databus_binlog import TableMap

Lookup = Callable[[str, str], Awaitable[Table | None]]


class Schemas:
    """Tables seen since this generation began."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._by_map: dict[str, Table] = {}
        self._latest: dict[tuple[str, str], Table] = {}

    def known(self, fingerprint: str) -> Table | None:
        """Give the table of the table map with this fingerprint, if it was seen."""
        return self._by_map.get(fingerprint)

    async def learn(self, table_map: TableMap) -> Table:
        """Make the table of a table map that is new. Raises SchemaMismatch when the binlog does not name columns."""
        if not table_map.has_names:
            raise SchemaMismatch(
                f"the binlog does not name the columns of {table_map.schema}.{table_map.name}: "
                "set binlog_row_metadata=FULL on the server (also for sessions that changed it)"
            )
        logged = described_by(table_map)
        listed = await self._lookup(table_map.schema, table_map.name)
        table = listed if listed is not None and _same_columns(listed, logged) else logged
        self._by_map[table_map.fingerprint] = self._latest[table.schema, table.name] = table
        return table

    async def after_ddl(self, schema: str, name: str) -> Table:
        """Describe a table as it is now; one that is gone as it was known last, or without columns."""
        self._by_map = {m: t for m, t in self._by_map.items() if (t.schema, t.name) != (schema, name)}
        table = await self._lookup(schema, name) or self._latest.get((schema, name))
        self._latest[schema, name] = table = table or Table(schema=schema, name=name, columns=())
        return table

    def tables_of(self, schema: str) -> list[str]:
        """List the tables of a schema that were seen and not dropped."""
        return [name for its_schema, name in self._latest if its_schema == schema]

    def forget(self, schema: str, name: str) -> None:
        """Take note that a table was dropped."""
        self._latest.pop((schema, name), None)


def _same_columns(listed: Table, logged: Table) -> bool:
    return listed.primary_key == logged.primary_key and [_shape(c) for c in listed.columns] == [
        _shape(c) for c in logged.columns
    ]


#: Types that one binlog type stands for, by the name we give it: MariaDB's JSON is a LONGTEXT, its UUID a BINARY(16).
_ALIASES = {"json": "longtext", "uuid": "binary", "inet6": "binary", "inet4": "binary"}
_SPATIAL = {"point", "linestring", "polygon", "geometrycollection", "geomcollection"}
_SPATIAL |= {f"multi{kind}" for kind in ("point", "linestring", "polygon")}
#: Types whose length, precision or fraction both sides spell the same way.
_SIZED = {"decimal", "bit", "time", "datetime", "timestamp", "char", "varchar", "varbinary"}
_SIZES = re.compile(r"\([\d,]+\)")


def _shape(column: Column) -> tuple[object, ...]:
    """Give what information_schema and the binlog must agree on for a column to be the same."""
    kind = "geometry" if column.type in _SPATIAL else _ALIASES.get(column.type, column.type)
    sizes = _SIZES.search(column.raw_type) if kind in _SIZED else None
    charset = "" if column.type in _ALIASES else column.charset
    return column.name, kind, sizes and sizes[0], charset, column.nullable, column.unsigned, column.values

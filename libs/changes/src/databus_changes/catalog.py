"""Reads tables from information_schema.

Snapshots and the schema history start from these tables. For a table that the binlog describes, information_schema adds
what a table map lacks, such as display widths, AUTO_INCREMENT and secondary indexes.
"""

from collections import defaultdict
from typing import Any, Protocol

from databus.events import Column, Index, Table
from databus_changes.charsets import charset_of
from databus_changes.literals import labels


class Queries(Protocol):
    """The part of a database session that is used here."""

    async def query(self, sql: str, args: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        ...


_COLUMNS = """
SELECT c.table_schema, c.table_name, c.column_name, c.data_type, c.column_type, c.is_nullable,
       COALESCE(c.character_set_name, ''), c.extra, COALESCE(t.table_collation, '')
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND {where}
ORDER BY c.table_schema, c.table_name, c.ordinal_position"""

_INDEXES = """
SELECT s.table_schema, s.table_name, s.index_name, s.column_name
FROM information_schema.statistics s
WHERE {where}
ORDER BY s.table_schema, s.table_name, s.index_name <> 'PRIMARY', s.non_unique, s.index_name, s.seq_in_index"""

_USER_SCHEMAS = "{0}.table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')"
_ONE_SCHEMA = "{0}.table_schema = %s"
_ONE_TABLE = "{0}.table_schema = %s AND {0}.table_name = %s"


async def read_tables(session: Queries, schema: str | None = None) -> list[Table]:
    """Read all tables of a schema, or of all user schemas, ordered by name."""
    return await _read(session, *((_USER_SCHEMAS, ()) if schema is None else (_ONE_SCHEMA, (schema,))))


async def read_table(session: Queries, schema: str, name: str) -> Table | None:
    """Read one table; None if the account sees no such table."""
    return next(iter(await _read(session, _ONE_TABLE, (schema, name))), None)


async def _read(session: Queries, where: str, args: tuple[object, ...]) -> list[Table]:
    columns: dict[tuple[str, str], list[Column]] = defaultdict(list)
    charsets: dict[tuple[str, str], str] = {}
    for schema, name, *column, collation in await session.query(_COLUMNS.format(where=where.format("c")), args):
        columns[schema, name].append(_column(*column))
        charsets[schema, name] = charset_of(collation)
    indexes: dict[tuple[str, str], dict[str, list[str | None]]] = defaultdict(lambda: defaultdict(list))
    for schema, name, index, column in await session.query(_INDEXES.format(where=where.format("s")), args):
        indexes[schema, name][index].append(column)
    return [_table(*key, found, indexes[key], charsets[key]) for key, found in columns.items()]


def _table(schema: str, name: str, columns: list[Column], indexes: dict[str, list[str | None]], charset: str) -> Table:
    order = {column.name: index for index, column in enumerate(columns)}
    # A key part over an expression has no column name. Such an index is skipped.
    named = {index: tuple(c for c in parts if c is not None) for index, parts in indexes.items() if None not in parts}
    return Table(
        schema=schema,
        name=name,
        columns=tuple(columns),
        primary_key=tuple(order[column] for column in named.get("PRIMARY", ())),
        indexes=tuple(Index(index, parts) for index, parts in named.items()),
        charset=charset,
    )


def _column(name: str, kind: str, raw_type: str, nullable: str, charset: str, extra: str) -> Column:
    extra = extra.lower()
    return Column(
        name=name,
        type=kind.lower(),
        raw_type=raw_type,
        nullable=nullable == "YES",
        unsigned=kind.lower() not in _LABELLED and "unsigned" in raw_type.lower(),
        charset=charset,
        values=labels(raw_type) if kind.lower() in _LABELLED else (),
        auto_increment="auto_increment" in extra,
        generated="generated" in extra and "default_generated" not in extra,
        invisible="invisible" in extra,
    )


_LABELLED = {"enum", "set"}

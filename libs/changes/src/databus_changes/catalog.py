"""Reads tables from information_schema.

Snapshots and the schema history start from these tables. For a table that the binlog describes, information_schema adds
what a table map lacks, such as display widths, AUTO_INCREMENT and secondary indexes.

Both kinds of servers print `PRI` for the columns of the row key, even if it is not the primary key.
"""

from collections import defaultdict
from typing import Any, NamedTuple, Protocol

from databus_binlog.errors import ServerRefused
from databus_changes.charsets import charset_of
from databus_core.events import Column, Index, Table
from databus_core.literals import labels


class Queries(Protocol):
    """The part of a database session that is used here."""

    async def query(self, sql: str, args: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        ...


_COLUMNS = """
SELECT c.table_schema, c.table_name, c.column_name, c.data_type, c.column_type, c.is_nullable,
       COALESCE(c.character_set_name, ''), c.extra, c.column_key, COALESCE(t.table_collation, '')
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND {where}
ORDER BY c.table_schema, c.table_name, c.ordinal_position"""

_NAMES = """
SELECT t.table_schema, t.table_name FROM information_schema.tables t
WHERE t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND {where}"""

_INDEXES = """
SELECT s.table_schema, s.table_name, s.index_name, s.column_name, s.non_unique = 0,
       s.sub_part IS NULL AND s.index_type <> 'HASH'
FROM information_schema.statistics s
WHERE {where}
ORDER BY s.table_schema, s.table_name, s.index_name <> 'PRIMARY', s.non_unique, s.index_name, s.seq_in_index"""

_PRIMARY = "PRIMARY"
_USER_SCHEMAS = "{0}.table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')"
_ONE_SCHEMA = "{0}.table_schema = %s"
_ONE_TABLE = "{0}.table_schema = %s AND {0}.table_name = %s"


async def read_names(session: Queries) -> list[tuple[str, str]]:
    """Read schema and name of all tables of all user schemas."""
    rows = await session.query(_NAMES.format(where=_USER_SCHEMAS.format("t")))
    return [(str(schema), str(name)) for schema, name in rows]


async def read_tables(session: Queries, schema: str | None = None) -> list[Table]:
    """Read all tables of a schema, or of all user schemas, ordered by name."""
    return await _read(session, *((_USER_SCHEMAS, ()) if schema is None else (_ONE_SCHEMA, (schema,))))


async def read_table(session: Queries, schema: str, name: str) -> Table | None:
    """Read one table; None if the account sees no such table."""
    return next(iter(await _read(session, _ONE_TABLE, (schema, name))), None)


async def _read(session: Queries, where: str, args: tuple[object, ...]) -> list[Table]:
    columns: dict[tuple[str, str], list[Column]] = defaultdict(list)
    row_keys: dict[tuple[str, str], set[str]] = defaultdict(set)
    charsets: dict[tuple[str, str], str] = {}
    for schema, name, *column, key, collation in await session.query(_COLUMNS.format(where=where.format("c")), args):
        columns[schema, name].append(_column(*column))
        charsets[schema, name] = charset_of(collation)
        if key == "PRI":
            row_keys[schema, name].add(columns[schema, name][-1].name)
    parts: dict[tuple[str, str], dict[str, list[_Part]]] = defaultdict(lambda: defaultdict(list))
    for schema, name, index, *part in await session.query(_INDEXES.format(where=where.format("s")), args):
        parts[schema, name][index].append(_Part(*part))
    tables = []
    for table, found in columns.items():
        indexes = _indexes(parts[table], row_keys[table])
        if sum(index.unique for index in indexes) > 1 and indexes[0].name != _PRIMARY:
            indexes = await _in_server_order(session, table, indexes)
        tables.append(_table(*table, found, indexes, charsets[table]))
    return tables


class _Part(NamedTuple):
    """A part of an index."""

    #: None for an expression
    column: str | None
    #: whether the index is unique
    unique: int
    #: whether the index contains the whole column, and not a prefix or a hash
    whole: int


def _indexes(parts: dict[str, list[_Part]], row_key: set[str]) -> list[Index]:
    """Return the indexes of a table, without those over expressions. `row_key`: columns of the row key."""
    columns = {name: tuple(part.column for part in found if part.column is not None) for name, found in parts.items()}
    known = {name: found for name, found in parts.items() if len(columns[name]) == len(found)}
    unique = {name for name, found in known.items() if all(part.unique and part.whole for part in found)}
    if not any({*columns[name]} == row_key for name in unique):
        # the engine MEMORY, where every index has type HASH, or a prefix that is as long as the column
        unique |= {name for name, found in known.items() if found[0].unique and {*columns[name]} == row_key}
    return [Index(name, columns[name], name in unique or name == _PRIMARY) for name in known]


async def _in_server_order(session: Queries, table: tuple[str, str], indexes: list[Index]) -> list[Index]:
    """Sort indexes as the server does, which decides about the row key. MySQL's information_schema lacks the order."""
    schema, name = (identifier.replace("`", "``") for identifier in table)
    try:
        rows = await session.query(f"SHOW INDEX FROM `{name}` FROM `{schema}`")
    except ServerRefused:
        return indexes  # the table has been dropped meanwhile
    order = {index: position for position, (_, _, index, *_) in enumerate(rows)}
    return sorted(indexes, key=lambda index: order.get(index.name, len(order)))


def _table(schema: str, name: str, columns: list[Column], indexes: list[Index], charset: str) -> Table:
    order = {column.name: index for index, column in enumerate(columns)}
    primary = next((index.columns for index in indexes if index.name == _PRIMARY), ())
    return Table(
        schema=schema,
        name=name,
        columns=tuple(columns),
        primary_key=tuple(order[column] for column in primary),
        indexes=tuple(indexes),
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
        virtual="virtual generated" in extra,
        invisible="invisible" in extra,
    )


_LABELLED = {"enum", "set"}

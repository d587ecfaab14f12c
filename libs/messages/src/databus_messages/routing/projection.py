"""Projects rows to the columns that a rule publishes: some can be left out, masked, hashed, truncated or renamed.

Masked and hashed values are text, whatever the column's type; NULL stays NULL. If several of mask, hash and truncate
name a column, only the strictest applies: mask, else hash, else truncate. A value that is ABSENT stays so.
"""

import hmac
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from databus_core.errors import InvalidSettings
from databus_core.events import Column, Index, Row, Table, is_absent
from databus_core.settings.rules import Rule
from databus_messages.formats.columns import BINARY, TEXT
from databus_messages.routing.columns import column_index, column_indexes

_MASK = b"***"

Rewrite: TypeAlias = Callable[[bytes], bytes]


class Projection(NamedTuple):
    """Converts the rows of one version of a table to the rows that are published."""

    #: the table as it is in the source
    source: Table
    #: the table as it is published
    table: Table
    #: for each published column, its index in the source table
    indexes: list[int]
    #: for each column whose values are rewritten, its index among the published columns, and the function
    rewrites: list[tuple[int, Rewrite]]

    def column_index(self, name: str) -> int:
        """Return the index of a column in published rows; `name` is its name in the source. Raises InvalidSettings."""
        index = column_index(self.source, name)
        if index not in self.indexes:
            raise InvalidSettings(f"column {name} is left out")
        return self.indexes.index(index)

    def row(self, row: Row) -> Row:
        """Project a row."""
        projected = [row[index] for index in self.indexes]
        for index, rewrite in self.rewrites:
            if (cell := projected[index]) is not None and not is_absent(cell):
                projected[index] = rewrite(cell)
        return projected


def project(rule: Rule, table: Table, salt: bytes) -> Projection:
    """Return a rule's projection of a table. Raises InvalidSettings if the rule does not fit the table."""
    indexes = _published(rule, table)
    masked, hashed = column_indexes(table, rule.mask), column_indexes(table, rule.hash)
    names = {table.columns[column_index(table, old)].name: new for old, new in rule.rename.items()}
    sizes = {index: size for name, size in rule.truncate.items() for index in column_indexes(table, [name])}
    columns: list[Column] = []
    rewrites: list[tuple[int, Rewrite]] = []
    for index in indexes:
        column = table.columns[index]
        rewrite: Rewrite | None = None
        if index in table.primary_key and (index in masked or (index in sizes and index not in hashed)):
            raise InvalidSettings(
                f"column {column.name} is part of the primary key: if it is masked or truncated, different rows may "
                "get the same key; hash it instead"
            )
        if index in masked:
            column, rewrite = _as_text(column, f"varchar({len(_MASK)})"), _mask
        elif index in hashed:
            column, rewrite = _as_text(column, "char(64)"), _hash(salt)
        elif index in sizes:
            column, rewrite = replace(column, declared=""), _truncate(column, sizes[index])
        if rewrite is not None:
            rewrites.append((len(columns), rewrite))
        columns.append(replace(column, name=names.get(column.name, column.name)))
    merged = {table.columns[index].name for index in indexes if index in masked | (sizes.keys() - hashed)}
    return Projection(table, _published_table(table, indexes, tuple(columns), merged), indexes, rewrites)


def _published(rule: Rule, table: Table) -> list[int]:
    """Return the indexes of the columns that are not left out."""
    all_indexes = range(len(table.columns))
    if rule.columns is None:
        return list(all_indexes)
    included, excluded = column_indexes(table, rule.columns.include), column_indexes(table, rule.columns.exclude)
    published = [
        index for index in all_indexes if (index in included if rule.columns.include else index not in excluded)
    ]
    for index in table.primary_key:
        if index not in published:
            raise InvalidSettings(
                f"columns: {table.columns[index].name} is part of the primary key: publish it (`hash` hides values)"
            )
    if not published:
        raise InvalidSettings("columns: every column is left out")
    return published


def _published_table(table: Table, indexes: list[int], columns: tuple[Column, ...], merged: set[str]) -> Table:
    """Return the table with its published columns; `merged`: columns in which different values may become the same."""
    names = [column.name for column in columns]
    if len({name.lower() for name in names}) < len(names):
        raise InvalidSettings("rename: two columns would have the same name")
    new_names = {table.columns[index].name: name for index, name in zip(indexes, names, strict=True)}
    left_out = {column.name for column in table.columns} - new_names.keys()
    return replace(
        table,
        columns=columns,
        primary_key=tuple(indexes.index(index) for index in table.primary_key),
        indexes=tuple(
            Index(
                index.name,
                tuple(new_names.get(name, name) for name in index.columns),
                index.unique and not merged & {*index.columns},
            )
            for index in table.indexes
            if not left_out & {*index.columns}
        ),
    )


def _as_text(column: Column, raw_type: str) -> Column:
    kind = raw_type.partition("(")[0]
    return Column(name=column.name, type=kind, raw_type=raw_type, nullable=column.nullable, charset="utf8mb4")


def _mask(_: bytes) -> bytes:
    return _MASK


def _hash(salt: bytes) -> Rewrite:
    return lambda text: hmac.digest(salt, text, "sha256").hex().encode()


def _truncate(column: Column, size: int) -> Rewrite:
    if column.type in BINARY:
        return lambda value: value[:size]
    if column.type in TEXT:
        # a character has at most 4 bytes: the rest of a long text need not be decoded
        return lambda text: text[: 4 * size].decode(errors="ignore")[:size].encode()
    raise InvalidSettings(f"truncate: column {column.name} is {column.raw_type}, neither text nor bytes")

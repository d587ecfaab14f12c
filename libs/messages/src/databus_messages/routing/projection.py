"""What a rule leaves of a row and its table: columns left out, masked, hashed, cut, renamed.

What is masked or hashed is told as text, whatever the column's type; NULL stays NULL. Of several rules for one column
the strictest counts: mask before hash before truncate.
"""

import hmac
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from databus.errors import InvalidSettings
from databus.events import Column, Index, Row, Table
from databus.settings.rules import Rule
from databus_messages.formats.columns import BINARY
from databus_messages.routing.columns import place_of, places_of

_MASK = b"***"
_TEXT = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})

Rewrite: TypeAlias = Callable[[bytes], bytes]


class Projection(NamedTuple):
    """What messages tell instead of a table and its rows."""

    source: Table
    #: as messages tell it
    table: Table
    #: of the row, in the order of the columns that are left
    places: list[int]
    #: place among those → what its values become
    rewrites: list[tuple[int, Rewrite]]

    def place_of(self, name: str) -> int:
        """Find a column, by its name in the table, among those that are left. Raises InvalidSettings."""
        place = place_of(self.source, name)
        if place not in self.places:
            raise InvalidSettings(f"column {name} is left out")
        return self.places.index(place)

    def row(self, row: Row) -> Row:
        """Project a row."""
        left = [row[place] for place in self.places]
        for place, rewrite in self.rewrites:
            if (cell := left[place]) is not None:
                left[place] = rewrite(cell)
        return left


def project(rule: Rule, table: Table, salt: bytes) -> Projection:
    """Make the projection of a version of a table. Raises InvalidSettings if the rule does not fit it."""
    places = _kept(rule, table)
    masked, hashed = places_of(table, rule.mask), places_of(table, rule.hash)
    names = {table.columns[place_of(table, old)].name: new for old, new in rule.rename.items()}
    cuts = {place: size for name, size in rule.truncate.items() for place in places_of(table, [name])}
    columns: list[Column] = []
    rewrites: list[tuple[int, Rewrite]] = []
    for place in places:
        column = table.columns[place]
        rewrite: Rewrite | None = None
        if place in table.primary_key and (place in masked or (place in cuts and place not in hashed)):
            raise InvalidSettings(f"column {column.name} is of the primary key, which would tell rows apart no longer")
        if place in masked:
            column, rewrite = _as_text(column, f"varchar({len(_MASK)})"), _mask
        elif place in hashed:
            column, rewrite = _as_text(column, "char(64)"), _hash(salt)
        elif place in cuts:
            rewrite = _cut(column, cuts[place])
        if rewrite is not None:
            rewrites.append((len(columns), rewrite))
        columns.append(replace(column, name=names.get(column.name, column.name)))
    return Projection(table, _table(table, places, tuple(columns)), places, rewrites)


def _kept(rule: Rule, table: Table) -> list[int]:
    everything = range(len(table.columns))
    if rule.columns is None:
        return list(everything)
    included, excluded = places_of(table, rule.columns.include), places_of(table, rule.columns.exclude)
    kept = [place for place in everything if (place in included if rule.columns.include else place not in excluded)]
    for place in table.primary_key:
        if place not in kept:
            raise InvalidSettings(f"columns: {table.columns[place].name} is of the primary key: keep it, or hash it")
    if not kept:
        raise InvalidSettings("columns: no column is left")
    return kept


def _table(table: Table, places: list[int], columns: tuple[Column, ...]) -> Table:
    names = [column.name for column in columns]
    if len({name.lower() for name in names}) < len(names):
        raise InvalidSettings("rename: two columns would have the same name")
    new = {table.columns[place].name: name for place, name in zip(places, names, strict=True)}
    gone = {column.name for column in table.columns} - new.keys()
    return replace(
        table,
        columns=columns,
        primary_key=tuple(places.index(place) for place in table.primary_key),
        indexes=tuple(
            Index(index.name, tuple(new.get(name, name) for name in index.columns))
            for index in table.indexes
            if not gone & {*index.columns}
        ),
    )


def _as_text(column: Column, raw_type: str) -> Column:
    kind = raw_type.partition("(")[0]
    return Column(name=column.name, type=kind, raw_type=raw_type, nullable=column.nullable, charset="utf8mb4")


def _mask(_: bytes) -> bytes:
    return _MASK


def _hash(salt: bytes) -> Rewrite:
    return lambda text: hmac.digest(salt, text, "sha256").hex().encode()


def _cut(column: Column, size: int) -> Rewrite:
    if column.type in BINARY:
        return lambda value: value[:size]
    if column.type in _TEXT:
        # of `size` characters none takes more than 4 bytes
        return lambda text: text[: 4 * size].decode(errors="ignore")[:size].encode()
    raise InvalidSettings(f"truncate: column {column.name} is {column.raw_type}, neither text nor bytes")

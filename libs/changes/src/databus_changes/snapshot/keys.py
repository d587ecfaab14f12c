"""Keys along which a table is read in chunks, and the SQL that compares their columns with values.

A value is canonical text (docs/reference/values.md). Its literal has a type that the server compares with the column
without a conversion of the column, so that it can use the index.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from databus_changes.snapshot.select import quoted
from databus_core.events import Column, Table

_INDEXES = """
SELECT s.index_name, s.column_name, COALESCE(s.collation, 'A') = 'D', s.sub_part IS NULL,
       c.column_type, COALESCE(c.collation_name, '')
FROM information_schema.statistics s JOIN information_schema.columns c USING (table_schema, table_name, column_name)
WHERE s.table_schema = %s AND s.table_name = %s AND s.non_unique = 0
ORDER BY s.index_name, s.seq_in_index"""

_NUMBERS = {
    "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year", "bit", "enum", "set",
}  # fmt: skip
_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
_BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
_TIMES = {"date", "time", "datetime", "timestamp"}
#: MariaDB's types that are BINARY(n) in canonical text → the type's name in a CAST
_PACKED = {"uuid": "UUID", "inet6": "INET6", "inet4": "INET4"}
_FLOATS = {"float", "double"}
_COMPARABLE = _NUMBERS | _TEXTS | _BYTES | _TIMES | _FLOATS | _PACKED.keys()

#: the values of a key's columns
KeyValues = tuple[bytes, ...]


class Queries(Protocol):
    """The part of a database session that is used here."""

    async def query(self, sql: str, args: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        ...


@dataclass(frozen=True)
class ChunkKey:
    """The index along which a table is read."""

    index: str
    #: indexes into the table's columns
    positions: tuple[int, ...]
    columns: tuple[Column, ...]
    #: whether the index has a column in descending order
    descending: tuple[bool, ...]
    #: names, types and collations of the columns: between tables whose keys differ in these, values mean other places
    signature: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def order(self) -> str:
        """The ORDER BY list, in the direction of the index."""
        columns = zip(self.columns, self.descending, strict=True)
        return ", ".join(quoted(column.name) + (" DESC" if descending else "") for column, descending in columns)

    def after(self, values: KeyValues) -> str:
        """Return the condition of the rows after a key, in the direction of the index."""
        return self._compare(values, ascending=">", descending="<", last="")

    def up_to(self, values: KeyValues) -> str:
        """Return the condition of the rows that are not after a key."""
        return self._compare(values, ascending="<", descending=">", last="=")

    def _compare(self, values: KeyValues, *, ascending: str, descending: str, last: str) -> str:
        """Compare the key with values by these operators; `last` is appended to that of the last column.

        The server uses an index for `a >= 1 AND (a > 1 OR (a = 1 AND b > 2))`, but may not for `(a, b) > (1, 2)`.
        """
        compared = [
            (quoted(column.name), descending if is_descending else ascending, literal(column, value))
            for column, is_descending, value in zip(self.columns, self.descending, values, strict=True)
        ]
        condition = ""
        for name, operator, value in reversed(compared):
            if condition:
                condition = f"({name} {operator} {value} OR ({name} = {value} AND {condition}))"
            else:
                condition = f"{name} {operator}{last} {value}"
        if len(compared) > 1:
            name, operator, value = compared[0]
            condition = f"{name} {operator}= {value} AND {condition}"
        return condition


class _Part(NamedTuple):
    """A column of an index; `whole`: the index does not contain only a prefix of it."""

    column: str
    descending: int
    whole: int
    type: str
    collation: str

    @property
    def signature(self) -> tuple[str, ...]:
        """Name, type, collation and direction."""
        return self.column, self.type, self.collation, "DESC" if self.descending else ""


async def chunk_key(session: Queries, table: Table) -> ChunkKey | None:
    """Return the key of a table; None if it has none, or one whose values cannot be compared by an index.

    It is the table's row key: columns that are NOT NULL, whole, and not virtual.
    """
    wanted = table.row_key
    names = [table.columns[position].name for position in wanted]
    indexes: dict[str, list[_Part]] = {}
    for index, *part in await session.query(_INDEXES, (table.schema, table.name)):
        indexes.setdefault(str(index), []).append(_Part(*part))
    columns = tuple(table.columns[position] for position in wanted)
    if not columns or not all(column.type in _COMPARABLE for column in columns):
        return None
    for index, parts in sorted(indexes.items(), key=lambda item: item[0] != "PRIMARY"):
        if [part.column for part in parts] == names and all(part.whole for part in parts):
            signature = tuple(" ".join(filter(None, part.signature)) for part in parts)
            return ChunkKey(index, wanted, columns, tuple(bool(part.descending) for part in parts), signature)
    return None


def literal(column: Column, value: bytes) -> str:
    """Return the SQL literal of a value of a column."""
    if column.type in _NUMBERS:
        return _number(value)
    if column.type in _FLOATS:
        return _float(value, single=column.type == "float")
    if column.type in _TEXTS:
        return f"_utf8mb4 X'{value.hex()}'"
    if column.type in _TIMES:
        return f"'{_time(value)}'"
    hexadecimal = f"X'{value.hex()}'"
    return f"CAST({hexadecimal} AS {_PACKED[column.type]})" if column.type in _PACKED else hexadecimal


def _number(value: bytes) -> str:
    text = value.decode("ascii")
    if not text.removeprefix("-").replace(".", "", 1).isdecimal():
        raise ValueError("the value of a key is not a number")
    return text


def _float(value: bytes, *, single: bool) -> str:
    """Return a DOUBLE literal that is exactly the value; the server compares a FLOAT as a DOUBLE."""
    number = float(value)
    if single:
        (number,) = struct.unpack("f", struct.pack("f", number))
    return f"{number:.17e}"


def _time(value: bytes) -> str:
    text = value.decode("ascii")
    if set(text) - set("0123456789-:. "):
        raise ValueError("the value of a key is not a date or time")
    return text


def key_of(row: Sequence[bytes | bool | None], positions: Sequence[int]) -> KeyValues:
    """Return the values of a row's key columns, which are NOT NULL and in every row image."""
    return cast(KeyValues, tuple([row[position] for position in positions]))

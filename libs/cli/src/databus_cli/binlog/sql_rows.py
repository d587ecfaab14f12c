"""Writes changes of rows as SQL statements that a server executes to exactly the same values.

A row is found by its key; without one, by all its values, and then LIMIT 1 takes one of several equal rows. The session
has to be set up by `SESSION`. Generated columns are left to the server; the binlog alone does not show which these are.
"""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from databus_binlog import Value
from databus_changes.tables import quoted_name
from databus_core.errors import PoisonError
from databus_core.events import Column, Table, is_absent
from databus_messages.formats.columns import FLOATS, SPATIAL, TEXT
from databus_messages.formats.sql_literals import literal_encoder

#: prepares a session. TIMESTAMP literals are in UTC; values such as 0000-00-00 and index 0 of an ENUM need a lax mode
SESSION = """\
SET NAMES utf8mb4;
SET SESSION time_zone = '+00:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES';
"""

Image = Sequence[Value]
ToSql = Callable[[bytes], str]


class RowStatements:
    """Writes statements for the rows of one table. They raise PoisonError if an image lacks what is needed."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._name = quoted_name((table.schema, table.name))
        self._columns = [_column(column) for column in table.columns]
        #: indexes of the columns that statements can set
        self._settable = [index for index, column in enumerate(table.columns) if not column.generated]
        self._names = ", ".join(self._columns[index].name for index in self._settable)

    def insert(self, image: Image) -> str:
        """Return the statement that inserts a row."""
        values = ", ".join([self._value(image, i) for i in self._settable])
        return f"INSERT INTO {self._name} ({self._names}) VALUES ({values});"  # noqa: S608

    def delete(self, image: Image) -> str:
        """Return the statement that deletes a row."""
        return f"DELETE FROM {self._name} WHERE {self._where(image)};"  # noqa: S608

    def update(self, old: Image, new: Image) -> str | None:
        """Return the statement that updates a row, if it changes something. ABSENT in `new` is no change."""
        changed, kept = [], []
        for i in self._settable:
            name = self._columns[i].name
            if not is_absent(new[i]) and new[i] != old[i]:
                changed.append(f"{name} = {self._value(new, i)}")
            elif self._columns[i].refreshed:
                kept.append(f"{name} = {name}")
        if not changed:
            return None
        return f"UPDATE {self._name} SET {', '.join(changed + kept)} WHERE {self._where(old)};"  # noqa: S608

    def _where(self, image: Image) -> str:
        if key := self.table.row_key:
            return " AND ".join(self._condition(image, i, self._columns[i].found) for i in key)
        return " AND ".join(self._condition(image, i, self._columns[i].same) for i in self._settable) + " LIMIT 1"

    def _value(self, image: Image, index: int) -> str:
        value = self._present(image, index)
        return "NULL" if value is None else self._columns[index].literal(value)

    def _condition(self, image: Image, index: int, write: ToSql) -> str:
        value = self._present(image, index)
        return f"{self._columns[index].name} IS NULL" if value is None else write(value)

    def _present(self, image: Image, index: int) -> bytes | None:
        value = image[index]
        if value is None or isinstance(value, bytes):
            return value
        name = self.table.columns[index].name
        raise PoisonError(f"the row image of {self.table.full_name} lacks column {name} (binlog_row_image)")


class _Column(NamedTuple):
    """How the values of a column are written; none of them is NULL."""

    #: quoted
    name: str
    #: a value to store
    literal: ToSql
    #: a condition by which the server can use an index
    found: ToSql
    #: a condition that only the same value meets
    same: ToSql
    #: whether the server may set the column in an UPDATE that does not (ON UPDATE CURRENT_TIMESTAMP)
    refreshed: bool


def _column(column: Column) -> _Column:
    name, literal = "`" + column.name.replace("`", "``") + "`", _literal(column)
    found = _found(name, column, literal)
    same = found
    if column.type in TEXT:  # collations ignore case and trailing spaces
        same = lambda value: f"CAST(CONVERT({name} USING utf8mb4) AS BINARY) = {literal(value)}"  # noqa: E731
    elif column.type in FLOATS:
        same = lambda value: found(value) if float(value) else _zero(name, value)  # noqa: E731
    return _Column(name, literal, found, same, column.type in {"timestamp", "datetime"})


def _literal(column: Column) -> ToSql:
    if column.type in FLOATS:  # as DOUBLE: a DECIMAL literal has no negative zero
        return lambda value: _double(value.decode())
    return literal_encoder(column, "mysql")


def _found(name: str, column: Column, literal: ToSql) -> ToSql:
    if column.type == "float":  # the server compares as DOUBLE
        return lambda value: f"{name} = {_double(repr(struct.unpack('f', struct.pack('f', float(value)))[0]))}"
    if column.type == "set":  # as a number, 64 labels would be signed
        return lambda value: f"CAST({name} AS UNSIGNED) = {literal(value)}"
    if column.type == "json":
        return lambda value: f"{name} = CAST({literal(value)} AS JSON)"
    if column.type in SPATIAL or column.type == "vector":
        return lambda value: f"HEX({name}) = '{value.hex().upper()}'"
    return lambda value: f"{name} = {literal(value)}"


def _zero(name: str, value: bytes) -> str:
    """Return a condition for 0 or -0, which are equal: MySQL would take a compared column for the constant."""
    like = "LIKE" if value.startswith(b"-") else "NOT LIKE"
    return f"{name} * 1 = 0 AND CAST({name} AS CHAR) {like} '-%'"


def _double(text: str) -> str:
    return text if "e" in text else f"{text}e0"

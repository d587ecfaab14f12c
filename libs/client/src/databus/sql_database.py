"""What the kinds of SQL databases differ in, for the tables of a replica."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Column, Connection, Engine, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError

from databus.sql_mysql import MySql
from databus.sql_types import column_of, without_zero_bytes
from databus.sql_types import reader as reader_of
from databus_core import events
from databus_core.errors import InvalidSettings


class Database(Protocol):
    """A kind of SQL database."""

    def columns(self, source: events.Table) -> list[Column[Any]]:
        """Return the columns for a table of the source; without its defaults, and only those of the key NOT NULL."""

    def options(self) -> dict[str, Any]:
        """Return the options of a table, as SQLAlchemy names them. The engine has been connected before."""

    def reader(self, column: events.Column) -> Callable[[bytes], Any]:
        """Return the function that turns a text of the source into what the column gets.

        An ENUM or SET becomes its label or labels, separated by commas, as the server prints it. The function raises
        NotStorable, or another ValueError or ArithmeticError if a text does not fit its column.
        """

    def upsert(self, table: Table) -> Any:
        """Build the INSERT that replaces rows with the same primary key, and no others."""

    def begin(self, engine: Engine) -> AbstractContextManager[Connection]:
        """Begin a transaction that stores values as they are, or not at all."""

    def refusal(self, error: DBAPIError) -> str | None:
        """Return why the database refuses a value or a table, without the value; None: it is another error."""

    def server(self, connection: Connection) -> str:
        """Return the identity of a server that may be a source of a pipeline; empty for other kinds."""


class _OnConflict:
    """PostgreSQL and SQLite."""

    def __init__(self, insert: Callable[[Table], Any], *, has_zero_bytes: bool) -> None:
        self._insert = insert
        self._has_zero_bytes = has_zero_bytes

    def columns(self, source: events.Table) -> list[Column[Any]]:
        return [column_of(column, in_key=index in source.primary_key) for index, column in enumerate(source.columns)]

    def options(self) -> dict[str, Any]:
        return {}

    def reader(self, column: events.Column) -> Callable[[bytes], Any]:
        return reader_of(column) if self._has_zero_bytes else without_zero_bytes(column)

    def upsert(self, table: Table) -> Any:
        others = [column.name for column in table.columns if not column.primary_key]
        keys = [column.name for column in table.columns if column.primary_key]
        into = self._insert(table)
        if not others:
            return into.on_conflict_do_nothing(index_elements=keys)
        return into.on_conflict_do_update(index_elements=keys, set_={name: into.excluded[name] for name in others})

    def begin(self, engine: Engine) -> AbstractContextManager[Connection]:
        return engine.begin()

    def refusal(self, error: DBAPIError) -> str | None:
        return type(error.orig).__name__ if isinstance(error, DataError) else None

    def server(self, _: Connection) -> str:
        return ""


def database_of(engine: Engine) -> Database:
    """Return the kind of a database. Raises InvalidSettings for one that a replica cannot be in."""
    match engine.dialect.name:
        case "postgresql":
            return _OnConflict(postgresql.insert, has_zero_bytes=False)
        case "sqlite":
            return _OnConflict(sqlite.insert, has_zero_bytes=True)
        case "mysql" | "mariadb":
            return MySql(engine.dialect)
        case other:
            raise InvalidSettings(f"apply writes to PostgreSQL, SQLite, MySQL and MariaDB, and not to {other}")

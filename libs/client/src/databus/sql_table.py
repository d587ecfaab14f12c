"""One table of a replica, and the statements that make it follow the source."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection, MetaData, Table, bindparam, delete

from databus.sql_database import Database
from databus.sql_types import NotStorable
from databus_core import events
from databus_core.errors import SchemaMismatch

#: a row image of the source: exact texts, None, and false for a column that the binlog lacks
Image: TypeAlias = Sequence[bytes | bool | None]
#: what to do about values that a database does not have
LEAVE_OUT = "leave the column out (publisher.routes, columns: {exclude: […]}), and begin again in an empty replica"


class ReplicaTable:
    """A table with the columns and the primary key that the source's table has."""

    def __init__(self, source: events.Table, schema: str | None, database: Database) -> None:
        self.source = source
        self._keys = sorted(source.primary_key)
        self._readers: list[tuple[str, Callable[[bytes], Any]]] = [
            (column.name, database.reader(column)) for column in source.columns
        ]
        self.table = Table(source.name, MetaData(), *database.columns(source), schema=schema, **database.options())
        self._upsert = database.upsert(self.table)
        self._delete = delete(self.table).where(
            *(self.table.c[source.columns[index].name] == bindparam(f"k{index}") for index in self._keys)
        )

    def insert(self, connection: Connection, images: Sequence[Image]) -> None:
        """Insert rows, or replace those with the same key."""
        if rows := [self._row(image) for image in images]:
            connection.execute(self._upsert, rows)

    def delete(self, connection: Connection, images: Iterable[Image]) -> None:
        """Delete the rows with the keys of these."""
        if keys := [self._key(image) for image in images]:
            connection.execute(self._delete, keys)

    def update(self, connection: Connection, images: Sequence[Image]) -> None:
        """Replace rows; images before and after alternate."""
        for before, after in zip(images[::2], images[1::2], strict=True):
            if False in after:
                self._update_some(connection, before, after)
                continue
            if self._key_texts(before) != self._key_texts(after):
                self.delete(connection, [before])
            self.insert(connection, [after])

    def _update_some(self, connection: Connection, before: Image, after: Image) -> None:
        """Set the columns that an image has: the binlog lacks the others, which were not changed."""
        names = [self.source.columns[index].name for index in self._keys]
        matches = [self.table.c[name] == key for name, key in zip(names, self._key(before).values(), strict=True)]
        connection.execute(self.table.update().where(*matches).values(self._row(after)))

    def _row(self, image: Image) -> dict[str, Any]:
        present = (index for index, cell in enumerate(image) if cell is not False)
        return {self._readers[index][0]: self._value(index, image) for index in present}

    def _key(self, image: Image) -> dict[str, Any]:
        return {f"k{index}": self._value(index, image) for index in self._keys}

    def _value(self, index: int, image: Image) -> Any:
        """Return the value of a column. Raises SchemaMismatch if the database does not have it."""
        (name, read), cell = self._readers[index], image[index]
        try:
            return read(cell) if isinstance(cell, bytes) else None
        except (ValueError, ArithmeticError) as error:
            reason = error if isinstance(error, NotStorable) else type(error).__name__  # other errors may quote it
            raise SchemaMismatch(
                f"a value of column {name} of {self.source.full_name} cannot be stored: {reason}; {LEAVE_OUT}"
            ) from None

    def _key_texts(self, image: Image) -> list[bytes | bool | None]:
        return [image[index] for index in self._keys]

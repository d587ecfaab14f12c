"""Keeps a bookmark in the database of a replica, in the transactions that write the rows."""

import asyncio
from contextlib import nullcontext
from typing import Any

import msgspec
from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, Text, delete, insert, select
from sqlalchemy.dialects.mysql import LONGTEXT

from databus.bookmark import Bookmark, Join

#: in MySQL and MariaDB: names of tables that differ in case are different; and the tables have transactions
_OPTIONS: dict[str, Any] = {
    f"{dialect}_{name}": value
    for dialect in ("mysql", "mariadb")
    for name, value in {"engine": "InnoDB", "default_charset": "utf8mb4", "collate": "utf8mb4_bin"}.items()
}


class SqlStore:
    """Keeps bookmarks, each under a name, in the table `databus_bookmarks` of an SQL database."""

    def __init__(self, engine: Engine, name: str = "default") -> None:
        self._engine, self._name = engine, name
        metadata, text = MetaData(), Text().with_variant(LONGTEXT(), "mysql", "mariadb")
        self._table = Table(
            "databus_bookmarks",
            metadata,
            Column("name", String(255), primary_key=True),
            Column("bookmark", text, nullable=False),
            **_OPTIONS,
        )
        self._loads = Table(
            "databus_loads",
            metadata,
            Column("name", String(255), primary_key=True),
            Column("loaded", String(255), primary_key=True),
            Column("changes", text, nullable=False),
            **_OPTIONS,
        )

    async def load(self) -> Bookmark | None:
        """Read the bookmark. Raises InvalidSettings if it is none, and SQLAlchemy's errors."""
        text = await asyncio.to_thread(self._select)
        return Bookmark.parse(text) if text else None

    async def save(self, bookmark: Bookmark) -> None:
        """Save the bookmark in a transaction of its own. Raises SQLAlchemy's errors."""
        await asyncio.to_thread(self.write, bookmark)

    def write(self, bookmark: Bookmark, connection: Connection | None = None) -> None:
        """Save the bookmark in the transaction of a connection, by default in one of its own. It blocks."""
        with nullcontext(connection) if connection else self._engine.begin() as used:
            used.execute(delete(self._table).where(self._table.c.name == self._name))
            used.execute(insert(self._table).values(name=self._name, bookmark=str(bookmark)))

    def loads(self) -> dict[str, Join | None]:
        """Return the tables that were loaded again: the changes that their dumps have; None: it was interrupted."""
        wanted = select(self._loads.c.loaded, self._loads.c.changes).where(self._loads.c.name == self._name)
        with self._engine.begin() as connection:
            self._loads.create(connection, checkfirst=True)
            found = connection.execute(wanted).all()
        return {table: msgspec.json.decode(text, type=Join) if text else None for table, text in found}

    def forget_loads(self) -> None:
        """Forget the tables that were loaded again: the replica begins again. It blocks."""
        with self._engine.begin() as connection:
            self._loads.create(connection, checkfirst=True)
            connection.execute(delete(self._loads).where(self._loads.c.name == self._name))

    def begin_load(self, table: str) -> None:
        """Note that the table `schema.table` is incomplete until `end_load`. It blocks."""
        self._note_load(table, "")

    def end_load(self, table: str, join: Join | None) -> None:
        """Note that a table has the rows of a dump with these changes; None: the table is gone. It blocks."""
        self._note_load(table, msgspec.json.encode(join).decode() if join else None)

    def _note_load(self, table: str, changes: str | None) -> None:
        mine = (self._loads.c.name == self._name) & (self._loads.c.loaded == table)
        with self._engine.begin() as connection:
            connection.execute(delete(self._loads).where(mine))
            if changes is not None:
                connection.execute(insert(self._loads).values(name=self._name, loaded=table, changes=changes))

    def _select(self) -> str | None:
        with self._engine.begin() as connection:
            self._table.create(connection, checkfirst=True)
            found: str | None = connection.scalar(
                select(self._table.c.bookmark).where(self._table.c.name == self._name)
            )
        return found

"""Keeps a bookmark in the database of a replica, in the transactions that write the rows."""

import asyncio
from contextlib import nullcontext

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, Text, delete, insert, select

from databus.bookmark import Bookmark


class SqlStore:
    """Keeps bookmarks, each under a name, in the table `databus_bookmarks` of an SQL database."""

    def __init__(self, engine: Engine, name: str = "default") -> None:
        self._engine, self._name = engine, name
        self._table = Table(
            "databus_bookmarks",
            MetaData(),
            Column("name", String(255), primary_key=True),
            Column("bookmark", Text, nullable=False),
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

    def loading(self) -> list[str]:
        """Return the tables whose loads have begun and not ended. It blocks."""
        with self._engine.begin() as connection:
            names = connection.scalars(select(self._table.c.name)).all()
        return [name.removeprefix(self._load_of("")) for name in names if name.startswith(self._load_of(""))]

    def begin_load(self, table: str) -> None:
        """Note that a table is incomplete until `end_load`. It blocks."""
        self.end_load(table)
        with self._engine.begin() as connection:
            connection.execute(insert(self._table).values(name=self._load_of(table), bookmark=""))

    def end_load(self, table: str) -> None:
        """Note that a table is complete. It blocks."""
        with self._engine.begin() as connection:
            connection.execute(delete(self._table).where(self._table.c.name == self._load_of(table)))

    def _load_of(self, table: str) -> str:
        return f"{self._name}: loading {table}"

    def _select(self) -> str | None:
        with self._engine.begin() as connection:
            self._table.create(connection, checkfirst=True)
            return connection.scalar(select(self._table.c.bookmark).where(self._table.c.name == self._name))

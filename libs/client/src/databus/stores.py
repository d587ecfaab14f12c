"""Stores keep the bookmark of a program, so that it continues where it was.

A store of your own has the two methods of `Store`. If it saves the bookmark in the transaction in which your program
writes what it made of the changes, each change has its effect exactly once.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Protocol, TypeVar

from databus.bookmark import Bookmark
from databus_core import durable

_T = TypeVar("_T")


class Store(Protocol):
    """Keeps a bookmark."""

    async def load(self) -> Bookmark | None:
        """Return the bookmark that was saved last; None if there is none."""

    async def save(self, bookmark: Bookmark) -> None:
        """Save a bookmark durably, in place of the one before."""


class FileStore:
    """Keeps a bookmark in a file, which is replaced at each save."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    async def load(self) -> Bookmark | None:
        """Read the file. Raises InvalidSettings if it is no bookmark, OSError."""
        text = await asyncio.to_thread(_read, self._path)
        return Bookmark.parse(text) if text else None

    async def save(self, bookmark: Bookmark) -> None:
        """Replace the file. Raises OSError."""
        await asyncio.to_thread(_write, self._path, str(bookmark))


class SqliteStore:
    """Keeps bookmarks, each under a name, in the table `databus_bookmarks` of an SQLite database."""

    def __init__(self, path: str | Path, name: str = "default") -> None:
        self._path, self._name = Path(path), name

    async def load(self) -> Bookmark | None:
        """Read the bookmark. Raises InvalidSettings if it is none, sqlite3.Error."""
        found = await asyncio.to_thread(self._in_database, self._select)
        return Bookmark.parse(found) if found else None

    async def save(self, bookmark: Bookmark) -> None:
        """Save the bookmark. Raises sqlite3.Error."""
        text = str(bookmark)
        await asyncio.to_thread(self._in_database, lambda database: self._replace(database, text))

    def _in_database(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        with closing(sqlite3.connect(self._path)) as database, database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS databus_bookmarks (name TEXT PRIMARY KEY, bookmark TEXT NOT NULL)"
            )
            return work(database)

    def _select(self, database: sqlite3.Connection) -> str | None:
        found = database.execute("SELECT bookmark FROM databus_bookmarks WHERE name = ?", (self._name,)).fetchone()
        return found[0] if found else None

    def _replace(self, database: sqlite3.Connection, text: str) -> None:
        database.execute("REPLACE INTO databus_bookmarks VALUES (?, ?)", (self._name, text))


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _write(path: Path, text: str) -> None:
    with durable.replacing(path) as file:
        file.write(text.encode())

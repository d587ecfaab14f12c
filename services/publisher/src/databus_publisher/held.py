"""Changes that are held back until their transaction is whole: in memory, and in a file when they are many."""

import struct
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO

import msgspec

from databus.events import Action, Begin, Row
from databus_messages.formats.base import Change
from databus_publisher.routes import Route

#: bytes of the changes that are kept in memory; there the cells of short values take up to twenty times as much
_MEMORY = 2**20
#: what a change takes beside its rows and its statement
_CHANGE = 500
_LENGTH = struct.Struct(">I")


class _Entry(msgspec.Struct, array_like=True):
    """A change, but for what all changes of its route and transaction share."""

    route: int
    action: Action
    start: int
    end: int
    first: int
    ordinals: list[int]
    rows: list[Row]
    query: bytes | None


_encode = msgspec.msgpack.Encoder(enc_hook=list).encode  # of a range of ordinals
_decode = msgspec.msgpack.Decoder(_Entry).decode


class Held:
    """Keeps changes in order, with their routes."""

    def __init__(self) -> None:
        #: the last ones, and their bytes
        self._few: list[tuple[Route, Change]] = []
        self._size = 0
        #: those before them, by the places of their routes
        self._file: IO[bytes] | None = None
        self._routes: list[Route] = []

    def __del__(self) -> None:
        """Let go of a transaction whose generation was lost."""
        if self._file is not None:
            self._file.close()

    def add(self, route: Route, change: Change, size: int) -> None:
        """Keep a change of an event whose rows have so many bytes."""
        self._few.append((route, change))
        self._size += size + len(change.query or b"") + _CHANGE
        if self._size > _MEMORY:
            self._store()

    def release(self, begin: Begin) -> Iterator[tuple[Route, Change]]:
        """Give back all that was kept, and forget it."""
        few, self._few, self._size = self._few, [], 0
        if self._file is not None:
            with self._file as file:
                self._file = None
                yield from self._stored(file, begin)
            self._routes.clear()
        yield from few

    def _store(self) -> None:
        """Move what is in memory to the file."""
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - it is closed by `release` or with us
        for route, change in self._few:
            if route not in self._routes:
                self._routes.append(route)
            where = (self._routes.index(route), change.action, change.start, change.end, change.first)
            entry = _encode((*where, change.ordinals, change.rows, change.query))
            self._file.write(_LENGTH.pack(len(entry)))
            self._file.write(entry)
        self._few.clear()
        self._size = 0

    def _stored(self, file: IO[bytes], begin: Begin) -> Iterator[tuple[Route, Change]]:
        file.seek(0)
        while length := file.read(_LENGTH.size):
            kept = _decode(file.read(*_LENGTH.unpack(length)))
            route = self._routes[kept.route]
            place = (kept.action, kept.start, kept.end, kept.first, kept.ordinals)
            yield route, Change(route.table, begin, *place, kept.rows, kept.query)

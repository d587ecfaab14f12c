"""Changes that wait for the end of their transaction: in memory, and in a temporary file when they are many."""

import struct
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO

import msgspec

from databus.events import Action, Begin, Row
from databus_messages.formats.base import Change
from databus_messages.routing.routes import Route

#: Limit of what is kept in memory, in bytes of packed rows and statements. As Python objects short values take up to
#: twenty times as much.
_MEMORY_BYTES = 2**20
#: what a change takes besides its rows and its statement
_CHANGE_BYTES = 500
_LENGTH = struct.Struct(">I")


class _Entry(msgspec.Struct, array_like=True):
    """A change in the file, without what all changes of its route and transaction share."""

    route: int
    action: Action
    start: int
    end: int
    first: int
    ordinals: list[int]
    rows: list[Row]
    query: bytes | None


_encode = msgspec.msgpack.Encoder(enc_hook=list).encode  # ordinals may be a range
_decode = msgspec.msgpack.Decoder(_Entry).decode


class TransactionBuffer:
    """Keeps the changes of one transaction in order, with their routes."""

    def __init__(self) -> None:
        #: the newest changes, and their size in bytes
        self._in_memory: list[tuple[Route, Change]] = []
        self._size = 0
        #: all earlier ones; an entry names its route by the index in `_routes`
        self._file: IO[bytes] | None = None
        self._routes: list[Route] = []

    def __del__(self) -> None:
        """Close the file of a transaction whose generation was lost."""
        if self._file is not None:
            self._file.close()

    def add(self, route: Route, change: Change, size: int) -> None:
        """Keep a change; `size` is that of its event's rows, in bytes."""
        self._in_memory.append((route, change))
        self._size += size + len(change.query or b"") + _CHANGE_BYTES
        if self._size > _MEMORY_BYTES:
            self._move_to_file()

    def release(self, begin: Begin) -> Iterator[tuple[Route, Change]]:
        """Give all changes in order, and forget them."""
        newest, self._in_memory, self._size = self._in_memory, [], 0
        if self._file is not None:
            with self._file as file:
                self._file = None
                yield from self._read(file, begin)
            self._routes.clear()
        yield from newest

    def _move_to_file(self) -> None:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - closed by `release` or `__del__`
        for route, change in self._in_memory:
            if route not in self._routes:
                self._routes.append(route)
            head = (self._routes.index(route), change.action, change.start, change.end, change.first)
            entry = _encode((*head, change.ordinals, change.rows, change.query))
            self._file.write(_LENGTH.pack(len(entry)))
            self._file.write(entry)
        self._in_memory.clear()
        self._size = 0

    def _read(self, file: IO[bytes], begin: Begin) -> Iterator[tuple[Route, Change]]:
        file.seek(0)
        while length := file.read(_LENGTH.size):
            entry = _decode(file.read(*_LENGTH.unpack(length)))
            route = self._routes[entry.route]
            event = (entry.action, entry.start, entry.end, entry.first)
            yield route, Change(route.table, begin, *event, entry.ordinals, entry.rows, entry.query)

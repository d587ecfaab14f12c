"""Changes that are held back until their transaction is whole: in memory, and on disk when they are many."""

import struct
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import Any

import msgspec

from databus.events import Action, Begin, Row
from databus.formats.base import Change
from databus_publisher.routes import Route

#: of changes that are kept in memory
_MEMORY = 8 * 2**20
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
        self._routes: list[Route] = []
        self._file: Any = None

    def __del__(self) -> None:
        """Let go of a transaction whose generation was lost."""
        if self._file is not None:
            self._file.close()

    def add(self, route: Route, change: Change) -> None:
        """Keep a change."""
        if self._file is None:
            self._file = SpooledTemporaryFile(_MEMORY)  # noqa: SIM115 - it is closed by `release` or with us
        if route not in self._routes:
            self._routes.append(route)
        place = self._routes.index(route)
        entry = _encode(
            (place, change.action, change.start, change.end, change.first, change.ordinals, change.rows, change.query)
        )
        self._file.write(_LENGTH.pack(len(entry)))
        self._file.write(entry)

    def release(self, begin: Begin) -> Iterator[tuple[Route, Change]]:
        """Give back all that was kept, and forget it."""
        if self._file is None:
            return
        with self._file as file:
            self._file = None
            routes, self._routes = self._routes, []
            file.seek(0)
            while length := file.read(_LENGTH.size):
                kept = _decode(file.read(*_LENGTH.unpack(length)))
                route = routes[kept.route]
                place = (kept.action, kept.start, kept.end, kept.first, kept.ordinals)
                yield route, Change(route.table, begin, *place, kept.rows, kept.query)

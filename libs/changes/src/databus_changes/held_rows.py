"""The rows of an XA transaction until their outcome is known: in memory, or in a file if they are many."""

import struct
from collections.abc import Iterator, Mapping
from tempfile import TemporaryFile
from typing import IO, TypeAlias

import msgspec

from databus_binlog import Event as BinlogEvent
from databus_changes.doubts import Doubt
from databus_core.events import Event, OversizedRow, RowsEvent, Table

HeldRows: TypeAlias = RowsEvent | OversizedRow

#: When the rows in memory are larger, they are moved to a temporary file.
_MEMORY_BYTES = 2**20
#: bytes that count for each event besides those of its rows and its statement
_EVENT_BYTES = 300
_LENGTH = struct.Struct(">I")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(RowsEvent | OversizedRow).decode


class HeldTransaction:
    """The rows of an XA transaction, in memory or in a temporary file. `first` is the first event of its group."""

    def __init__(self, first: BinlogEvent) -> None:
        self.first = first
        #: time of the XA PREPARE, in µs since the epoch; 0 before it
        self.time_us = 0
        #: fingerprint → table of the rows
        self.tables: dict[str, Table] = {}
        #: `start` and `end` of the XA COMMIT, which replace those of the rows: they may belong to another file
        self.offsets: dict[str, int] = {}
        #: doubts about the rows, to be reported when they are committed
        self.doubts: list[Doubt] = []
        #: size in bytes of the rows in memory
        self.size = 0
        self._in_memory: list[HeldRows] = []
        #: all earlier rows; None if all are in memory
        self._file: IO[bytes] | None = None

    def __del__(self) -> None:
        """Close the file of a transaction whose rows were not released."""
        if self._file is not None:
            self._file.close()

    def append(self, rows: HeldRows, table: Table) -> None:
        """Add the rows of an event."""
        self.tables[table.fingerprint] = table
        self._in_memory.append(rows)
        self.size += _EVENT_BYTES
        if isinstance(rows, RowsEvent):
            self.size += len(rows.rows) + len(rows.query or b"")
        if self.size > _MEMORY_BYTES:
            self.move_to_file()

    @property
    def is_empty(self) -> bool:
        """Whether there are neither captured rows nor doubts about some."""
        return not self.tables and not self.doubts

    def drop_rows(self) -> None:
        """Remove all rows, but not the doubts about them."""
        self.tables.clear()
        self._in_memory.clear()
        self.size, self._file = 0, None

    def move_to_file(self) -> None:
        """Free the memory of the rows."""
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - closed by `release` or `__del__`
        for rows in self._in_memory:
            encoded = _encode(rows)
            self._file.write(_LENGTH.pack(len(encoded)))
            self._file.write(encoded)
        self._in_memory.clear()
        self.size = 0

    def release(self, tables: Mapping[str, Table]) -> Iterator[Event]:
        """Yield the rows in order, and remove them. `tables` maps fingerprints of `self.tables` to definitions.

        Rows of other tables are left out.
        """
        for rows in self._all():
            if rows.table not in tables:
                continue
            yield msgspec.structs.replace(rows, table=tables[rows.table].fingerprint, **self.offsets)

    def _all(self) -> Iterator[HeldRows]:
        latest, self._in_memory = self._in_memory, []
        if self._file is not None:
            with self._file as file:
                self._file = None
                file.seek(0)
                while length := file.read(_LENGTH.size):
                    yield _decode(file.read(*_LENGTH.unpack(length)))
        yield from latest

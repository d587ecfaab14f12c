"""Passes on to mysql-replication only the events of a dump that the library can read.

The library silently skips events that it does not know, and rows whose table map it has not seen. So the gate checks
each packet first. It drops events that are not needed, and raises an error for an event that the library would lose or
misread. It also corrects the library's dump command.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from databus_binlog import commands, control
from databus_binlog.errors import CorruptEvent, UnknownEvent
from databus_binlog.event_types import SKIPPED
from databus_binlog.event_types import EventType as E
from databus_binlog.gtid import Flavor
from databus_binlog.mysql_replication.values import require_known_types
from databus_binlog.table_map import TableMap, names_of, parse_table_map

_HEADER = struct.Struct("<IBIIIH")  # time, type, server id, size, next position, flags
_ARTIFICIAL, _IGNORABLE = 0x20, 0x80

# The events that the gate passes on, besides FORMAT_DESCRIPTION, table maps and rows.
_PASSED_ON = frozenset({
    E.QUERY, E.STOP, E.ROTATE, E.XID, E.HEARTBEAT, E.ROWS_QUERY, E.GTID, E.ANONYMOUS_GTID, E.XA_PREPARE,
    E.ANNOTATE_ROWS, E.GTID_MARIADB,
})  # fmt: skip
_ROWS = frozenset(range(E.WRITE_ROWS_V1, E.DELETE_ROWS_V1 + 1)) | frozenset(range(E.WRITE_ROWS, E.DELETE_ROWS + 1))
# The rows that the library skips or misreads: MariaDB's compressed rows, and partial updates.
_UNREADABLE_ROWS = frozenset(range(E.WRITE_ROWS_COMPRESSED_V1, E.DELETE_ROWS_COMPRESSED + 1)) | {E.PARTIAL_UPDATE_ROWS}
_NO_TABLE = 0xFFFFFF  # table number in an event that has no rows and only ends a statement


class Gate:
    """Wraps the library's connection, and describes the event that was read last."""

    head: control.EventHead = (0, 0, "", 0, 0)
    artificial: bool  #: the server created the event while sending; it is not in the file
    table: TableMap  #: the table of the last table map or rows event that was passed on
    statement_end: bool  #: the last rows event was the last one of its statement

    def __init__(
        self,
        connection: Any,
        *,
        flavor: Flavor,
        checksum: bool,
        collations: Mapping[int, str],
        wanted: Callable[[str, str], bool] | None,
        statements: bool,
        row_limit: int | None,
    ) -> None:
        self._connection = connection
        self._flavor = flavor
        self._checksum = checksum  # whether events have a checksum; the library assumes the same for all files
        self._collations = collations
        self._wanted = wanted
        self._annotate = statements and flavor == "mariadb"
        self._row_limit = row_limit or sys.maxsize
        self._table = lru_cache(10_000)(self._parse)
        self._tables: dict[int, TableMap | None] = {}  # by number, those of the current statement; None: not wanted
        self._kind = 0
        self._file, self._offset = "", 0

    def hang_up(self) -> None:
        """End the dump; may be called in any thread."""
        with contextlib.suppress(OSError, AttributeError):  # it is already closed
            self._connection._sock.shutdown(socket.SHUT_RDWR)  # pymysql can't interrupt a read

    # --- called by the library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "_next_seq_id":  # the library sets this attribute of its connection
            self._connection._next_seq_id = value
        else:
            super().__setattr__(name, value)

    def _write_bytes(self, data: bytes) -> None:
        """Cut a packet to the length in its header: extra bytes make MariaDB reset the connection at the dump's end.

        Ask MariaDB for statements in a dump command; the library does so only if the dump starts at a GTID set.
        """
        packet = data[: 4 + int.from_bytes(data[:3], "little")]
        self._connection._write_bytes(commands.annotated(packet) if self._annotate else packet)

    def _read_packet(self) -> Any:
        while True:
            packet = self._connection._read_packet()
            data = packet.get_all_data()
            if data[0] != 0 or self._passes(data[1:]):  # a packet with an event has status 0
                return packet

    # --- events

    def _passes(self, event: bytes) -> bool:
        """Return whether to pass an event on. Raises BinlogError if it is damaged or the library can't read it."""
        try:
            return self._inspect(event)
        except (LookupError, ValueError, struct.error) as error:
            raise CorruptEvent(f"event type {self._kind} at {self.where} can't be read: {error}") from error

    def _inspect(self, event: bytes) -> bool:
        time, self._kind, server_id, _, next_position, flags = _HEADER.unpack_from(event)
        self.artificial = bool(flags & _ARTIFICIAL)
        self.head = time, server_id, self._file, *self._span(len(event), next_position)
        if self._kind == E.FORMAT_DESCRIPTION:
            return self._format_description(event)
        if self._checksum and zlib.crc32(event[:-4]) != int.from_bytes(event[-4:], "little"):
            raise CorruptEvent(f"wrong checksum of event type {self._kind} at {self.where}; check disk and network")
        body = event[_HEADER.size : -4 if self._checksum else None]
        if self._kind == E.TABLE_MAP:
            return self._table_map(body)
        if self._kind in _ROWS | _UNREADABLE_ROWS:
            return self._rows(body, len(event))
        if self._kind == E.ROTATE:
            rotate = control.rotate(self.head, body, artificial=self.artificial)
            self._file, self._offset = rotate.next_file, rotate.position
        elif self._kind == E.INCIDENT:
            raise control.incident(self.head, body)
        elif self._kind == E.ROWS_QUERY and not self._checksum:
            raise self._unreadable("it removes four bytes as a checksum even if binlog_checksum is NONE")
        if self._kind not in _PASSED_ON | SKIPPED and not flags & _IGNORABLE:
            raise self._unreadable("it skips events of this type")
        return self._kind in _PASSED_ON

    def charset(self, collation: int | None) -> str | None:
        """Return a collation's character set."""
        return None if collation is None else self._collations.get(collation)

    @property
    def in_table(self) -> bool:
        """Whether the event is a table map or rows."""
        return self._kind in _ROWS or self._kind == E.TABLE_MAP

    @property
    def where(self) -> str:
        """File and position of the event."""
        return f"{self.head[2]}:{self.head[3]}"

    def _unreadable(self, why: str) -> UnknownEvent:
        what = f"mysql-replication can't read event type {self._kind} at {self.where}: {why}"
        return UnknownEvent(f"{what}; choose the engine native")

    def _span(self, size: int, next_position: int) -> tuple[int, int]:
        """Return the event's start and end. `next_position`, from the header, is the lower 32 bits of the end, or 0."""
        if self._kind == E.HEARTBEAT:
            self._offset = self._widened(next_position)
            return self._offset, self._offset
        if self.artificial or (next_position == 0 and self._kind in SKIPPED | {E.FORMAT_DESCRIPTION}):
            return self._offset, self._offset  # the server created the event while sending
        # next_position is 0 inside transactions of MariaDB ≥ 11.4. Everywhere else it is correct even if the server
        # has left out events, unlike the sum of offset and size.
        self._offset = self._widened(next_position) if next_position else self._offset + size
        return self._offset - size, self._offset

    def _widened(self, position: int) -> int:
        """Complete the lower 32 bits of an offset as the decoder does (EventWriter.widened)."""
        upper = self._offset & ~0xFFFFFFFF
        if self._offset - upper > position + 0x40000000:
            upper += 1 << 32
        return upper | position

    def _format_description(self, event: bytes) -> bool:
        description, _ = control.format_description(self.head, event)
        if description.checksum != self._checksum:
            raise self._unreadable("the file was written with another binlog_checksum than the server has now")
        self._tables.clear()
        return True

    def _table_map(self, body: bytes) -> bool:
        table = self._table(body[8:])
        self._tables[int.from_bytes(body[:6], "little")] = table
        if table:
            self.table = table
        return table is not None

    def _parse(self, layout: bytes) -> TableMap | None:
        if self._wanted and not self._wanted(*names_of(layout)):
            return None
        table = parse_table_map(layout, self._flavor, self._collations)
        require_known_types(table)
        return table

    def _rows(self, body: bytes, size: int) -> bool:
        number = int.from_bytes(body[:6], "little")
        self.statement_end = bool(body[6] & 1)
        if number not in self._tables and number != _NO_TABLE:
            raise CorruptEvent(f"rows at {self.where} belong to no table map; read from an earlier position")
        table = self._tables.get(number)
        if self.statement_end:
            self._tables.clear()
        if table is None:
            return False
        if self._kind in _UNREADABLE_ROWS:
            raise self._unreadable("it skips such rows or decodes them wrongly")
        if size > self._row_limit:
            raise self._unreadable(f"the event's {size} bytes are above row_limit, and the library would load them all")
        self.table = table
        return True

"""Parses the bodies of control events: those that are not rows, but give the rows their position and transaction.

Layouts: libs/mysql/binlog/event/{control_events,statement_events}.h in MySQL's source, sql/log_event.h in MariaDB's.
The functions take an event's head and its body (without header and checksum), and raise LookupError or ValueError if
the body is malformed. GTID, XID and BEGIN come with every transaction, so compiled code reads them (transactions.pyx).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from databus_binlog import charsets
from databus_binlog.cursor import Cursor
from databus_binlog.errors import Incident, UnknownEvent, UnsupportedColumn
from databus_binlog.event_types import EventType, name_of
from databus_binlog.events import FormatDescription, Gtid, Heartbeat, Query, Rotate, RowsQuery, XaPrepare
from databus_binlog.gtid import Flavor
from databus_binlog.position import release
from databus_binlog.tagged import parse_tagged_gtid

#: time, server id, file, start, end: the first fields of every event
EventHead = tuple[int, int, str, int, int]

_HEADER = 19  # bytes of an event's header
_FLAGS = 17  # offset of the flags in the header
_IN_USE = 0x01  # flag of FORMAT_DESCRIPTION: the server is writing the file
_FIRST_OF_MARIADB = 160  # number of MariaDB's first own event type
_FIXED = 2 + 50 + 4 + 1  # bytes of FORMAT_DESCRIPTION before the list with a size for each event type
_TAIL = 1 + 4  # bytes of FORMAT_DESCRIPTION after that list
_BEGINNING = 64  # bytes of a rows event that are enough to find its table
_TOO_MANY_NAMES = 254  # in place of the number of schema names, if there are too many to list

#: in the version of development trees of MySQL 5.1 and 5.2; see the constructor of Format_description_event in MySQL
_OTHER_NUMBERS = "-a_drop"
#: START_V3, events of LOAD DATA, and rows of MySQL 5.1 before its release
_ONLY_BEFORE_5_1_16 = frozenset({1, 6, 8, 10, 12, 20, 21, 22})

#: Sizes of QUERY's status variables that have a fixed size, by code.
_STATUS_SIZES = {
    0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1, 17: 8, 18: 2, 19: 1, 20: 1, 21: 1, 128: 3, 129: 8,
}  # fmt: skip
_SQL_MODE, _CHARSETS = 1, 4  # codes; CHARSETS: collations u16 of client, connection and server
_XID, _XID_MARIADB = 17, 129  # of a DDL statement


def format_description(head: EventHead, event: bytes) -> tuple[FormatDescription, Flavor]:
    """Read version u16, server version 50 bytes, created u32, header size u8, sizes, checksum algorithm u8, CRC.

    `event` is the complete event, with header and checksum.
    """
    body = event[_HEADER:]
    if len(body) < _FIXED + _TAIL:
        raise IndexError("it is truncated")
    version = _version(body)
    if body[:2] != b"\x04\0" or body[56] != _HEADER:
        raise ValueError(
            f"binlog version {body[0]} of server {version}, with event headers of {body[56]} bytes;"
            f" only version 4 with headers of {_HEADER} bytes can be read"
        )
    if _OTHER_NUMBERS in version:
        raise ValueError(f"server {version} numbers the types of events in its own way; upgrade the server")
    flavor: Flavor = "mariadb" if len(body) - _FIXED - _TAIL >= _FIRST_OF_MARIADB else "mysql"
    checksum = (flavor == "mariadb" or release(version) >= (5, 6, 1)) and body[-_TAIL] == 1
    if checksum:  # the server computes it without the flag IN_USE
        written = bytearray(event[:-4])
        written[_FLAGS] &= ~_IN_USE
        if zlib.crc32(written) != int.from_bytes(event[-4:], "little"):
            raise ValueError("wrong checksum; check disk and network")
    return FormatDescription(*head, version, checksum), flavor


def _version(body: bytes) -> str:
    """Return the server's version from the body of START_V3 or FORMAT_DESCRIPTION."""
    return body[2:52].rstrip(b"\0").decode("utf-8", "replace")


def unknown(kind: int, where: str, version: str, body: bytes) -> UnknownEvent:
    """Return the error for an event that can't be decoded; `version` is the server's, if it is known."""
    if kind == EventType.START_V3:
        version = _version(body)
    event = f"event type {kind} ({name_of(kind)}) at {where}" + (f" of server {version}" if version else "")
    if kind in _ONLY_BEFORE_5_1_16:
        advice = "can't be decoded, and must not be skipped: only MySQL before 5.1.16 logs it; upgrade the server"
    else:
        advice = "can't be decoded by this version, and must not be skipped; upgrade to a version that supports it"
    return UnknownEvent(f"{event} {advice}")


def rotate(head: EventHead, body: bytes, *, artificial: bool) -> Rotate:
    """Read position u64 and the next file's name."""
    cursor = Cursor(body)
    position = cursor.uint(8)
    name = cursor.take(len(body) - 8).decode()
    if not name:
        raise ValueError("it names no file")
    return Rotate(*head, name, position, artificial)


def heartbeat(head: EventHead, body: bytes, long: bool) -> Heartbeat:
    """Read the file's name. The position is in the event's header, or if `long`, in a u64 before the name.

    MariaDB sends the long form for positions beyond 4 GiB.
    """
    time, server_id, _, position, _ = head
    if long:
        cursor = Cursor(body)
        position, body = cursor.uint(8), body[cursor.at :]
    return Heartbeat(time, server_id, body.decode(), position, position)


def heartbeat_v2(head: EventHead, body: bytes) -> Heartbeat:
    """Read fields: type u8 (1 name, 2 position, 0 end), lenenc length, value. A position is a lenenc integer."""
    time, server_id, name, position, _ = head
    cursor = Cursor(body)
    while cursor and (field := cursor.uint(1)):
        value = cursor.lenenc_bytes()
        if field == 1:
            name = value.decode()
        elif field == 2:
            position = Cursor(value).lenenc()
    return Heartbeat(time, server_id, name, position, position)


def gtid_tagged(head: EventHead, body: bytes) -> Gtid:
    """Read MySQL's GTID with a tag."""
    gtid, committed = parse_tagged_gtid(body)
    return Gtid(*head, gtid, False, False, "", committed)


def xa_prepare(head: EventHead, body: bytes) -> XaPrepare:
    """Read one-phase flag u8, format u32, length of gtrid u32, length of bqual u32, gtrid, bqual."""
    cursor = Cursor(body)
    one_phase, format_id, gtrid, bqual = cursor.uint(1), cursor.uint(4), cursor.uint(4), cursor.uint(4)
    xid = f"X'{cursor.take(gtrid).hex()}',X'{cursor.take(bqual).hex()}',{format_id}"
    return XaPrepare(*head, xid, bool(one_phase))


def rows_query(head: EventHead, body: bytes) -> RowsQuery:
    """Skip the length u8, which is too short for most statements, and read the statement."""
    Cursor(body).take(1)
    return RowsQuery(*head, body[1:])


def annotate_rows(head: EventHead, body: bytes) -> RowsQuery:
    """Read the statement."""
    return RowsQuery(*head, body)


def incident(head: EventHead, body: bytes) -> Incident:
    """Read number u16, length u8, message."""
    message = body[3:].decode("utf-8", "replace")
    return Incident(f"the server lost events before {head[2]}:{head[3]}: {message}")


class Parts:
    """Assembles a rows event that MariaDB ≥ 12.3 logs in parts (PARTIAL_ROW_DATA).

    Of an event of more than `limit` bytes only the beginning is kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._start()

    def _start(self) -> None:
        self.complete = True
        self._event = bytearray()
        self._number = self._size = 0
        self._announced: int | None = None

    def add(self, body: bytes, size: int) -> None:
        """Read number of parts u32, number of this part u32 (from 1), flags u8, size of the event u64 if flag 1, part.

        `size` is the size of the complete body; the end of `body` may be cut off.
        """
        cursor = Cursor(body)
        total, number, flags = cursor.uint(4), cursor.uint(4), cursor.uint(1)
        if number != self._number + 1 or number > total:
            raise ValueError(f"part {number} of {total} follows part {self._number}")
        if flags & 1:
            self._announced = cursor.uint(8)
        if len(self._event) == self._size:  # all parts before this one were kept completely
            self._event += body[cursor.at :]
        self._size += size - cursor.at
        if self._size > self._limit:
            del self._event[_BEGINNING:]
        self._number, self.complete = number, number == total

    def take(self) -> tuple[bytearray, int]:
        """Return the event, or only its beginning, and the size of the complete event."""
        event, size, announced = self._event, self._size, self._announced
        self._start()
        if announced not in {None, size}:
            raise ValueError("the size of its parts differs from the announced size")
        return event, size


def query(head: EventHead, body: bytes, text: bytes | None, collations: Mapping[int, str], fixed: int) -> Query:
    """Read thread u32, seconds u32, schema length u8, error u16, status length u16, status, schema, NUL, statement.

    `text` is the inflated statement, or None if it was not compressed. `fixed` is the number of bytes before the status
    variables. Raises UnsupportedColumn for a character set that can't be decoded.
    """
    cursor = Cursor(body)
    thread_id, _, schema_size = cursor.uint(4), cursor.uint(4), cursor.uint(1)
    error_code, status_size = cursor.uint(2), cursor.uint(2)
    cursor.take(fixed - 13)
    status = _status(cursor.take(status_size))
    schema = cursor.take(schema_size + 1)[:-1].decode()
    statement = body[cursor.at :] if text is None else text
    server_charset = ""
    if (logged := status.get(_CHARSETS)) is not None:
        charset = collations.get(logged & 0xFFFF, f"collation {logged & 0xFFFF}")
        server_charset = collations.get(logged >> 32, "")
        try:
            statement = charsets.statement(statement, charset)
        except LookupError as error:
            raise UnsupportedColumn(f"statement at {head[2]}:{head[3]} can't be read: {error}") from error
    xid = status.get(_XID, status.get(_XID_MARIADB))
    return Query(*head, schema, statement, thread_id, error_code, xid, server_charset, status.get(_SQL_MODE, 0))


def text_start(body: bytes, fixed: int) -> int:
    """Return the offset of a QUERY's statement in its body."""
    return fixed + int.from_bytes(body[11:13], "little") + body[8] + 1


def _status(data: bytes) -> dict[int, int]:
    """Return the status variables that have a fixed size, by code. Stop at an unknown code."""
    values: dict[int, int] = {}
    cursor = Cursor(data)
    while cursor:
        match cursor.uint(1):
            case code if code in _STATUS_SIZES:
                values[code] = cursor.uint(_STATUS_SIZES[code])
            case 2:  # CATALOG
                cursor.take(cursor.uint(1) + 1)
            case 5 | 6:  # TIME_ZONE, CATALOG_NZ
                cursor.take(cursor.uint(1))
            case 11:  # INVOKER: user, host
                cursor.take(cursor.uint(1))
                cursor.take(cursor.uint(1))
            case 12:  # UPDATED_DB_NAMES
                count = cursor.uint(1)
                for _ in range(count if count != _TOO_MANY_NAMES else 0):
                    while cursor.uint(1):
                        pass
            case 130:  # MariaDB's GTID_FLAGS3
                cursor.take(8 if cursor.uint(1) & 12 else 0)
            case _:
                break
    return values

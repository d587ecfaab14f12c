"""The events of a binlog, as the decoder returns them.

A transaction is usually `Gtid, [Query BEGIN], ([RowsQuery], (Rows | OversizedRows)…)…, (Xid | Query COMMIT)`, and a
statement outside of a transaction (DDL) is `Gtid, Query`. MariaDB sends no BEGIN; it sets `Gtid.standalone` if a
statement outside of a transaction follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from databus_binlog.table_map import TableMap

Action = Literal["insert", "update", "delete"]

#: A column's value in a row image: its text, None for NULL, or ABSENT where the image does not hold the column.
Value: TypeAlias = bytes | bool | None
ABSENT: Final = False


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of every event: its time, its server, its file and offsets."""

    time: int  #: seconds since 1970; 0 for a Heartbeat and an artificial Rotate
    server_id: int  #: id of the server that first wrote the event
    file: str  #: name of the binlog file
    #: offset of the event's first byte, also beyond 4 GiB; events in a compressed transaction have its start and end
    start: int
    end: int  #: offset of the next event


class FormatDescription(Event, frozen=True, array_like=True, gc=False, tag=1):
    """The first event of a file."""

    server_version: str
    checksum: bool  #: every event of the file ends with its CRC-32


class Rotate(Event, frozen=True, array_like=True, gc=False, tag=2):
    """The log continues in `next_file`. The server creates an artificial Rotate when it opens a file to send it."""

    next_file: str
    position: int  #: offset in `next_file`
    artificial: bool


class Gtid(Event, frozen=True, array_like=True, gc=False, tag=3):
    """The start of a transaction, which may be a single statement."""

    gtid: str  #: `uuid:n`, `uuid:tag:n`, `domain-server-sequence`, or "" for an anonymous one
    standalone: bool  #: MariaDB: exactly one statement follows, without a commit
    ddl: bool  #: MariaDB: the transaction is a DDL statement
    #: phase of MariaDB's ALTER in two phases (binlog_alter_two_phase): the statement is logged twice, and takes effect
    #: at "commit"; "" for all other statements
    alter: Literal["", "start", "commit", "rollback"]
    commit_time_us: int  #: when the original server committed it, in microseconds since 1970; 0 if unknown
    xa_prepare: bool = False  #: MariaDB: the transaction ends in XA PREPARE
    thread_id: int = 0  #: MariaDB ≥ 11.5: the session's; 0 if it is not logged. MySQL's is in BEGIN


class Query(Event, frozen=True, array_like=True, gc=False, tag=4):
    """A statement as text: BEGIN, COMMIT, SAVEPOINT, XA statements, DDL, or DML in statement format.

    For BEGIN, the variables of the session have their defaults.
    """

    schema: str
    query: bytes  #: UTF-8, with invalid bytes (those of binary literals) as they are
    thread_id: int
    error_code: int
    xid: int | None  #: XID that newer servers log for a DDL statement; None for all others
    server_charset: str = ""  #: variable character_set_server; "" if it is not known
    sql_mode: int = 0  #: bits of the variable sql_mode; 0 if it is not logged


class Xid(Event, frozen=True, array_like=True, gc=False, tag=5):
    """A transaction is committed."""

    xid: int


class XaPrepare(Event, frozen=True, array_like=True, gc=False, tag=6):
    """An XA transaction is committed in one phase, or it is prepared and a later Query commits it or rolls it back."""

    xid: str  #: X'gtrid',X'bqual',format
    one_phase: bool


class RowsQuery(Event, frozen=True, array_like=True, gc=False, tag=7):
    """The statement that caused the rows that follow (ROWS_QUERY, ANNOTATE_ROWS)."""

    query: bytes


class Rows(Event, frozen=True, array_like=True, gc=False, tag=8):
    """Changed rows of one table."""

    table: str  #: fingerprint of the table's TableMap, the key in `Events.tables`
    table_id: int  #: number of the table in the log, which changes when the server opens the table again
    action: Action
    count: int  #: number of row images; an update has two per row: before, after
    complete: bool  #: no column, except hidden ones, is absent from any image (binlog_row_image=FULL)
    statement_end: bool  #: these are the last rows of the statement
    #: msgpack array of row images, each an array of the columns' values: `bin` (the text), nil (NULL) or false (ABSENT)
    rows: msgspec.Raw

    def images(self) -> list[list[Value]]:
        """Return the row images as lists; each contains the values of the table's columns, in their order."""
        return _decode_images(self.rows)


class Heartbeat(Event, frozen=True, array_like=True, gc=False, tag=9):
    """The server has nothing more to send up to offset `end` of `file`, usually the end of its log."""


class Stop(Event, frozen=True, array_like=True, gc=False, tag=10):
    """The server shut down and will continue in a new file."""


class OversizedRows(Event, frozen=True, array_like=True, gc=False, tag=11):
    """Replaces Rows that are larger than the limit; their content is not known."""

    table: str  #: fingerprint of the table's TableMap, the key in `Events.tables`
    action: Action
    #: size of the event in bytes, or of its inflated data if only that is above the limit; inflated columns are counted
    #: up to the value that exceeds the limit
    size: int
    statement_end: bool  #: these are the last rows of the statement


AnyEvent: TypeAlias = (
    FormatDescription | Rotate | Gtid | Query | Xid | XaPrepare | RowsQuery | Rows | Heartbeat | Stop | OversizedRows
)

_decode_events = msgspec.msgpack.Decoder(list[AnyEvent]).decode
_decode_images = msgspec.msgpack.Decoder(list[list[Value]]).decode
_ARRAY32 = b"\xdd"  # msgpack: an array whose length follows in four bytes
encode_event = msgspec.msgpack.Encoder().encode


def decode_part(encoded: bytes, count: int) -> list[AnyEvent]:
    """Return the objects of `count` events, whose arrays follow one another in `encoded`: a part of `Events.data`."""
    return _decode_events(b"".join((_ARRAY32, count.to_bytes(4, "big"), encoded)))


class Events:
    """Consecutive events in binlog order. Iterating creates an object for each event; reading `data` creates none."""

    __slots__ = ("_count", "data", "images", "tables")

    def __init__(self, data: bytes, count: int, images: int, tables: Mapping[str, TableMap]) -> None:
        self._count = count
        self.data = data  #: msgpack array of the events, each an array of its class's tag and fields
        self.images = images  #: number of row images in the events
        self.tables = tables  #: fingerprint → TableMap of every table that a Rows or OversizedRows refers to

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[AnyEvent]:
        return iter(_decode_events(self.data))

"""The events of a binlog, as the decoder hands them out.

A transaction is `Gtid, [Query BEGIN], ([RowsQuery], Rows…)…, (Xid | Query COMMIT)`; a statement of its own (DDL) is
`Gtid, Query`. MariaDB marks the latter with `Gtid.standalone` and sends no BEGIN.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from databus_binlog.table_map import TableMap

Action = Literal["insert", "update", "delete"]


class Event(msgspec.Struct, frozen=True):
    """What every event tells: when, by which server, and where it stands in which file."""

    time: int  #: seconds since 1970, 0 for events the server makes up while sending
    server_id: int  #: of the server that first wrote it
    file: str
    start: int  #: offset of its first byte, counted beyond 4 GiB
    end: int  #: offset of the next event


class FormatDescription(Event, frozen=True):
    """The head of a file."""

    server_version: str
    checksum: bool


class Rotate(Event, frozen=True):
    """The log goes on in `next_file`. An artificial one is made up by the server when it opens a file to send it."""

    next_file: str
    position: int
    artificial: bool


class Gtid(Event, frozen=True):
    """A transaction or a statement of its own begins."""

    gtid: str  #: `uuid:n`, `uuid:tag:n`, `domain-server-sequence`, or "" for an anonymous one
    standalone: bool  #: MariaDB: exactly one statement follows, without a commit
    ddl: bool  #: MariaDB: that statement is DDL
    commit_time_us: int  #: microseconds since 1970 at the first server, 0 where unknown


class Query(Event, frozen=True):
    """A statement as text: BEGIN, COMMIT, DDL, or DML in statement format."""

    schema: str
    query: bytes  #: UTF-8
    thread_id: int
    error_code: int
    xid: int | None  #: of a statement that is a transaction of its own


class Xid(Event, frozen=True):
    """A transaction is committed."""

    xid: int


class XaPrepare(Event, frozen=True):
    """An XA transaction is prepared (or committed in one phase); a Query tells its outcome later."""

    xid: str  #: X'gtrid',X'bqual',format
    one_phase: bool


class RowsQuery(Event, frozen=True):
    """The statement that caused the rows that follow (ROWS_QUERY, ANNOTATE_ROWS)."""

    query: bytes


class Rows(Event, frozen=True):
    """Changed rows of one table."""

    table: TableMap
    action: Action
    count: int  #: row images; an update has two per row: before, after
    rows: bytes  #: `count` msgpack arrays, each with the column's text as `bin`, or nil, in table order
    statement_end: bool

    def images(self) -> list[list[bytes | None]]:
        """Return `rows` as Python values."""
        array_head = b"\xdd" + self.count.to_bytes(4, "big")
        return msgspec.msgpack.decode(array_head + self.rows, type=list[list[bytes | None]])


class Heartbeat(Event, frozen=True):
    """The server has nothing to send; it stands at `end` of `file`."""


class Stop(Event, frozen=True):
    """The server shut down and will go on in a new file."""

"""The types of events, by the numbers in their headers.

MySQL defines them in libs/mysql/binlog/event/binlog_event.h, MariaDB its own (160 and above) in sql/log_event.h.
"""

from __future__ import annotations

from enum import IntEnum


class EventType(IntEnum):
    """An event's type. GTID is MySQL's event; GTID_MARIADB is MariaDB's, which has the same name and another number."""

    UNKNOWN, START_V3, QUERY, STOP, ROTATE, INTVAR = range(6)
    SLAVE, APPEND_BLOCK, DELETE_FILE, RAND, USER_VAR, FORMAT_DESCRIPTION, XID = 7, 9, 11, 13, 14, 15, 16
    BEGIN_LOAD_QUERY, EXECUTE_LOAD_QUERY, TABLE_MAP = 17, 18, 19
    PRE_GA_WRITE_ROWS, PRE_GA_UPDATE_ROWS, PRE_GA_DELETE_ROWS = 20, 21, 22
    WRITE_ROWS_V1, UPDATE_ROWS_V1, DELETE_ROWS_V1 = 23, 24, 25
    INCIDENT, HEARTBEAT, IGNORABLE, ROWS_QUERY = 26, 27, 28, 29
    WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS = 30, 31, 32
    GTID, ANONYMOUS_GTID, PREVIOUS_GTIDS, TRANSACTION_CONTEXT, VIEW_CHANGE, XA_PREPARE = 33, 34, 35, 36, 37, 38
    PARTIAL_UPDATE_ROWS, TRANSACTION_PAYLOAD, HEARTBEAT_V2, GTID_TAGGED = 39, 40, 41, 42
    ANNOTATE_ROWS, BINLOG_CHECKPOINT, GTID_MARIADB, GTID_LIST, START_ENCRYPTION, QUERY_COMPRESSED = range(160, 166)
    WRITE_ROWS_COMPRESSED_V1, UPDATE_ROWS_COMPRESSED_V1, DELETE_ROWS_COMPRESSED_V1 = 166, 167, 168
    WRITE_ROWS_COMPRESSED, UPDATE_ROWS_COMPRESSED, DELETE_ROWS_COMPRESSED = 169, 170, 171
    PARTIAL_ROW_DATA = 172


_E = EventType

#: The events that the decoder skips, because they contain neither rows nor statements. START_ENCRYPTION is skipped only
#: in a dump; in a file it is an error.
SKIPPED = frozenset({
    # These only prepare the statement that follows: its variables, or the file that LOAD DATA reads.
    _E.INTVAR, _E.RAND, _E.USER_VAR, _E.APPEND_BLOCK, _E.DELETE_FILE, _E.BEGIN_LOAD_QUERY,
    # These describe the log or the replication group.
    _E.SLAVE, _E.IGNORABLE, _E.PREVIOUS_GTIDS, _E.TRANSACTION_CONTEXT, _E.VIEW_CHANGE,
    _E.BINLOG_CHECKPOINT, _E.GTID_LIST, _E.START_ENCRYPTION,
})  # fmt: skip


def name_of(kind: int) -> str:
    """Return a type's name, or "unknown"."""
    return EventType(kind).name if kind in EventType.__members__.values() else "unknown"

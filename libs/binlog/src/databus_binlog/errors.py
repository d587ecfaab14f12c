"""All errors of the package, grouped by what to do about them.

BinlogError
├── Retryable                the same call may succeed later: wait and connect again
│   ├── Disconnected             the connection was lost, or a session that streams was used for a query
│   ├── ServerUnavailable        the server can't be reached, or can't answer now
│   │   └── LockTimeout              a lock was not granted within lock_wait_timeout
│   └── TableChanged             DDL changed a table after the read view was opened
└── Fatal                    the same call fails again: an operator must act
    ├── AccessDenied             login refused
    ├── TlsFailed                a TLS connection could not be established
    ├── MissingPrivilege         the account lacks a grant
    ├── DuplicateServerId        another replica uses this server id
    ├── PositionPurged           the server no longer has the log from this position on
    ├── PositionUnknown          the server's log does not have the transaction that this position ends with
    ├── InvalidPosition          no dump can start at this position
    ├── EngineUnavailable        the chosen engine is not installed, or does not support an option
    ├── ServerRefused            any other error that the server returned
    │   └── TimeLimitReached         a statement took longer than the session or the server allows
    ├── CorruptResult            the answer to a SELECT is truncated or inconsistent
    ├── CorruptEvent             wrong checksum, truncated or inconsistent bytes, a file that is no readable binlog
    ├── UnknownEvent             an event that this version or the chosen engine can't decode, and must not skip
    ├── Incident                 the server reports that events are missing from its log
    ├── MissingMetadata          a table map lacks metadata that is needed to decode its columns
    ├── OversizedStatement       a statement is larger than row_limit
    ├── PartialRowImage          a row image lacks columns without which the row can't be decoded
    └── UnsupportedColumn        a type, value or character set that can't be decoded, of a column or statement

The messages are one line each; they name positions and tables, never row data.
"""

from __future__ import annotations


class BinlogError(Exception):
    """Any error that stops reading a binlog."""


class Retryable(BinlogError):
    """Wait and connect again."""


class Disconnected(Retryable):
    """The connection to the server was lost, or a session that streams was used for a query."""


class ServerUnavailable(Retryable):
    """The server can't be reached, or can't answer now."""


class LockTimeout(ServerUnavailable):
    """A lock was not granted within lock_wait_timeout."""


class TableChanged(Retryable):
    """DDL changed a table after the read view was opened: its rows can only be read in a new view."""


class Fatal(BinlogError):
    """A retry cannot help."""


class AccessDenied(Fatal):
    """The server refused the login."""


class TlsFailed(Fatal):
    """A TLS connection could not be established: a certificate, a host name, a file or the protocol is wrong."""


class MissingPrivilege(Fatal):
    """The account lacks a privilege."""


class DuplicateServerId(Fatal):
    """Another replica is connected with the same server id."""


class PositionPurged(Fatal):
    """The server no longer has the log from this position on."""


class PositionUnknown(Fatal):
    """The server's log does not have the transaction that the position ends with."""


class InvalidPosition(Fatal):
    """No dump can start at the position.

    For example, no event starts there, it is inside a transaction or malformed, it lacks a GTID set or file that the
    dump needs, or the server writes no binary log.
    """


class EngineUnavailable(Fatal):
    """The chosen engine is not installed, or does not support an option."""


class ServerRefused(Fatal):
    """The server answered with an error that has no class of its own."""


class TimeLimitReached(ServerRefused):
    """A statement took longer than max_execution_time or max_statement_time allow."""


class CorruptResult(Fatal):
    """The answer to a SELECT is truncated or inconsistent."""


class CorruptEvent(Fatal):
    """Wrong checksum, truncated or inconsistent bytes, or a file that is no readable binlog."""


class UnknownEvent(Fatal):
    """This version or the chosen engine can't decode an event, and must not skip it."""


class Incident(Fatal):
    """The server reports that events are missing from its log."""


class MissingMetadata(Fatal):
    """A table map lacks metadata that is needed to decode its columns."""


class OversizedStatement(Fatal):
    """A statement larger than row_limit. It can't be skipped."""


class PartialRowImage(Fatal):
    """A row image lacks columns without which the row can't be decoded."""


class UnsupportedColumn(Fatal):
    """The type, character set or value of a column, or the character set of a statement, is not supported."""


# Error codes, see https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html; MariaDB's own start at 1900.
_UNAVAILABLE = {
    1040,
    1053,
    1077,
    1079,
    1129,
    1135,
    1158,
    1159,
    1160,
    1161,
    1203,
    1226,
    1317,
    1927,
    2002,
    2003,
    3032,
    3168,
}
_LOGIN = {1045, 1130, 1698, 3118, 3159, 4151}
_PRIVILEGE = {1044, 1142, 1227}
#: code → class, and what happened
_ALWAYS: dict[int, tuple[type[BinlogError], str]] = {
    1205: (LockTimeout, "a lock was not granted in time"),
    **dict.fromkeys((1969, 3024), (TimeLimitReached, "the statement took longer than it may")),
    1412: (TableChanged, "a table was changed by DDL after the read view was opened"),
    **dict.fromkeys((0, 2006, 2013, 2055, 4031), (Disconnected, "connection to the server lost")),
}
_DUMP_REFUSED = {
    1236,  # ER_SOURCE_FATAL_ERROR_READING_BINLOG
    4052,  # MariaDB disconnects a replica when another one connects with its server id
}

# Parts of the texts of the errors in _DUMP_REFUSED, in lower case: only the text shows the cause.
_PURGED = ("purged", "could not find", "missing transactions")
_UNKNOWN = ("is missing the gtid", "not in the master's", "more gtids with the source's server_uuid")
_DUPLICATE = ("same server_uuid/server_id", "same server_uuid or server_id", "same server_id")
_POSITION = ("truncated in the middle", "bogus data", "impossible position", "position > file size", "read past")


def from_server(code: int, message: str, *, user: str = "", grant: str = "REPLICATION SLAVE") -> BinlogError:
    """Return the error for an error packet. `grant` is the privilege that the refused command needs."""
    text = message.strip().lower()
    origin = f"(server error {code}: {message.strip()})"
    if code in _DUMP_REFUSED:
        return _dump_refused(text, origin)
    if code in _ALWAYS:
        kind, what = _ALWAYS[code]
        return kind(f"{what} {origin}")
    if code in _UNAVAILABLE or "wsrep has not yet prepared" in text:  # a node that is joining its Galera cluster
        return ServerUnavailable(f"server unavailable {origin}")
    if code in _PRIVILEGE:
        who = f"user {user!r}" if user else "the user"  # what decodes a stream does not know it
        return MissingPrivilege(f"{who} lacks a privilege; GRANT {grant} ON *.* TO this user {origin}")
    if code in _LOGIN:
        advice = "check user and password, and the TLS options if the server demands TLS"
        return AccessDenied(f"login refused for user {user!r}; {advice} {origin}")
    return ServerRefused(f"the server refused the command {origin}")


def _dump_refused(text: str, origin: str) -> BinlogError:
    """Return the error for a refused or ended dump, by the server's text."""
    if any(part in text for part in _DUPLICATE):
        return DuplicateServerId(f"another replica uses this server id; give every reader its own {origin}")
    if any(part in text for part in _UNKNOWN):
        return PositionUnknown(f"the server lacks the last transaction before this position, or has diverged {origin}")
    if any(part in text for part in _PURGED):
        what = "the server no longer has the log from this position on"
        return PositionPurged(f"{what}; start again from a new snapshot {origin}")
    if any(part in text for part in _POSITION):
        return InvalidPosition(f"no event starts at this position; start again from a new snapshot {origin}")
    return ServerRefused(f"the server refused to send its log {origin}")

"""The MySQL and MariaDB replication protocol, and a compiled binlog decoder.

The names below suffice to read binlog files. `databus_binlog.session` reads a server's log, and `databus_binlog.locate`
finds positions in it; both modules need `databus-binlog[connect]`.
"""

from databus_binlog.decoder import Decoder
from databus_binlog.engines import Engine
from databus_binlog.errors import (
    AccessDenied,
    BinlogError,
    CorruptEvent,
    Disconnected,
    DuplicateServerId,
    EngineUnavailable,
    Fatal,
    Incident,
    InvalidPosition,
    MissingMetadata,
    MissingPrivilege,
    OversizedStatement,
    PartialRowImage,
    PositionPurged,
    PositionUnknown,
    Retryable,
    ServerRefused,
    ServerUnavailable,
    TlsFailed,
    UnknownEvent,
    UnsupportedColumn,
)
from databus_binlog.events import (
    ABSENT,
    Action,
    AnyEvent,
    Event,
    Events,
    FormatDescription,
    Gtid,
    Heartbeat,
    OversizedRows,
    Query,
    Rotate,
    Rows,
    RowsQuery,
    Stop,
    Value,
    XaPrepare,
    Xid,
)
from databus_binlog.files import read_file
from databus_binlog.gtid import Flavor, GtidSet, MariaDbGtidPosition, MySqlGtidSet
from databus_binlog.login import Login, Tls
from databus_binlog.number_text import float_text
from databus_binlog.position import Position, Server
from databus_binlog.stream import EventStream
from databus_binlog.table_map import ColumnMap, FieldType, TableMap

__all__ = [
    "ABSENT",
    "AccessDenied",
    "Action",
    "AnyEvent",
    "BinlogError",
    "ColumnMap",
    "CorruptEvent",
    "Decoder",
    "Disconnected",
    "DuplicateServerId",
    "Engine",
    "EngineUnavailable",
    "Event",
    "EventStream",
    "Events",
    "Fatal",
    "FieldType",
    "Flavor",
    "FormatDescription",
    "Gtid",
    "GtidSet",
    "Heartbeat",
    "Incident",
    "InvalidPosition",
    "Login",
    "MariaDbGtidPosition",
    "MissingMetadata",
    "MissingPrivilege",
    "MySqlGtidSet",
    "OversizedRows",
    "OversizedStatement",
    "PartialRowImage",
    "Position",
    "PositionPurged",
    "PositionUnknown",
    "Query",
    "Retryable",
    "Rotate",
    "Rows",
    "RowsQuery",
    "Server",
    "ServerRefused",
    "ServerUnavailable",
    "Stop",
    "TableMap",
    "Tls",
    "TlsFailed",
    "UnknownEvent",
    "UnsupportedColumn",
    "Value",
    "XaPrepare",
    "Xid",
    "float_text",
    "read_file",
]

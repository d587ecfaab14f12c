"""Converts the library's events into ours.

The events equal those of the native engine, except that `Gtid.commit_time_us` is always 0, and that there is no
RowsQuery if MariaDB's binlog is requested by file and offset: the library then does not request Annotate_rows events.
`values` converts the columns' values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from pymysqlreplication import event as library
from pymysqlreplication import row_event

from databus_binlog.charsets import UTF8
from databus_binlog.control import EventHead
from databus_binlog.errors import UnsupportedColumn
from databus_binlog.events import (
    ABSENT,
    Action,
    AnyEvent,
    FormatDescription,
    Gtid,
    Heartbeat,
    Query,
    Rotate,
    Rows,
    RowsQuery,
    Stop,
    XaPrepare,
    Xid,
    encode_event,
)
from databus_binlog.mysql_replication.gate import Gate
from databus_binlog.mysql_replication.values import ImageBuilder
from databus_binlog.table_map import TableMap

_ACTIONS: dict[type, Action] = {
    row_event.WriteRowsEvent: "insert",
    row_event.UpdateRowsEvent: "update",
    row_event.DeleteRowsEvent: "delete",
}
_STANDALONE, _DDL, _XA_PREPARED = 1, 32, 64  # MariaDB's flags of a GTID
_MAX_TABLES = 10_000  # in Converter._tables


def _xa_prepare(head: EventHead, event: Any) -> XaPrepare:
    xid = f"X'{event.xid_gtrid.hex()}',X'{event.xid_bqual.hex()}',{event.xid_format_id}"
    return XaPrepare(*head, xid, event.one_phase)


def _heartbeat(head: EventHead, event: Any) -> Heartbeat:
    time, server_id, _, start, end = head
    return Heartbeat(time, server_id, event.ident, start, end)


def _gtid_mariadb(head: EventHead, event: Any) -> Gtid:
    standalone, ddl, xa_prepare = (bool(event.flags & flag) for flag in (_STANDALONE, _DDL, _XA_PREPARED))
    return Gtid(*head, event.gtid, standalone, ddl, "", 0, xa_prepare)


def _gtid_anonymous(head: EventHead, _: Any) -> Gtid:
    """Convert a NotImplementedEvent: ANONYMOUS_GTID is the only such type that the gate passes on."""
    return Gtid(*head, "", False, False, "", 0)


_CONVERTERS: dict[type, Callable[[EventHead, Any], AnyEvent]] = {
    library.XidEvent: lambda head, event: Xid(*head, event.xid),
    library.GtidEvent: lambda head, event: Gtid(*head, event.gtid, False, False, "", 0),
    library.NotImplementedEvent: _gtid_anonymous,
    library.MariadbGtidEvent: _gtid_mariadb,
    library.RowsQueryLogEvent: lambda head, event: RowsQuery(*head, event.query.encode()),
    library.MariadbAnnotateRowsEvent: lambda head, event: RowsQuery(*head, event.sql_statement),
    library.XAPrepareEvent: _xa_prepare,
    library.HeartbeatLogEvent: _heartbeat,
    library.StopEvent: lambda head, _: Stop(*head),
    library.FormatDescriptionEvent: lambda head, event: FormatDescription(
        *head, event.mysql_version_str, event.checksum_algorithm == 1
    ),
}


class Converter:
    """Converts the events that a gate passes on."""

    table: TableMap  #: the table of the rows that were converted last, completed by `describe`

    def __init__(self, gate: Gate, describe: Callable[[TableMap], TableMap] | None) -> None:
        self.gate = gate
        self._describe = describe
        self._tables: dict[str, tuple[TableMap, ImageBuilder]] = {}  # by the fingerprint before `describe`

    def convert(self, event: Any) -> AnyEvent | None:
        """Convert an event; return None for a table map."""
        if isinstance(event, row_event.TableMapEvent):
            self._table_map(event)
            return None
        if isinstance(event, row_event.RowsEvent):
            return self._rows(event)
        if isinstance(event, library.QueryEvent):
            return self._query(event)
        if isinstance(event, library.RotateEvent):
            if len(self._tables) >= _MAX_TABLES:
                self._tables.clear()
            return Rotate(*self.gate.head, event.next_binlog, event.position, self.gate.artificial)
        return _CONVERTERS[type(event)](self.gate.head, event)

    def _query(self, event: Any) -> Query:
        r"""Convert a statement. The library decodes every statement as UTF-8, and writes other bytes as `\x…`."""
        charset = self.gate.charset(getattr(event, "character_set_client", None))
        if "\\x" in event.query or not (event.query.isascii() or charset in UTF8):
            raise UnsupportedColumn(
                f"mysql-replication can't read the statement at {self.gate.where} exactly, since it may not be UTF-8;"
                " choose the engine native"
            )
        schema, xid = event.schema.decode("utf-8", "replace"), getattr(event, "ddl_xid", getattr(event, "xid", None))
        query = Query(*self.gate.head, schema, event.query.encode(), event.slave_proxy_id, event.error_code, xid)
        if event.query == "BEGIN":
            return query
        server_charset = self.gate.charset(getattr(event, "collation_server", None)) or ""
        return msgspec.structs.replace(query, server_charset=server_charset, sql_mode=getattr(event, "sql_mode", 0))

    def _table_map(self, event: Any) -> None:
        table = self.gate.table
        if table.fingerprint not in self._tables:
            described = table.described_as(self._describe(table)) if self._describe else table
            self._tables[table.fingerprint] = described, ImageBuilder(table, event.columns)

    def _rows(self, event: Any) -> Rows:
        self.table, builder = self._tables[self.gate.table.fingerprint]
        sides = [("", event.columns_present_bitmap)]
        if isinstance(event, row_event.UpdateRowsEvent):
            sides = [("before_", event.columns_present_bitmap), ("after_", event.columns_present_bitmap2)]
        images = [
            builder.image(row[f"{side}values"], row[f"{side}none_sources"], present)
            for row in event.rows
            for side, present in sides
        ]
        return Rows(
            *self.gate.head,
            table=self.table.fingerprint,
            table_id=event.table_id,
            action=_ACTIONS[type(event)],
            count=len(images),
            complete=not any(ABSENT is value for image in images for value in image),
            statement_end=self.gate.statement_end,
            rows=msgspec.Raw(encode_event(images)),
        )

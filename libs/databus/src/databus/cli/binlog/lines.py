"""The lines that are printed, by the name of their format."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from databus.declared import described_by
from databus.events import Action, RowsEvent, Table
from databus.formats.databus import Encoder
from databus_binlog import (
    ABSENT,
    AnyEvent,
    ColumnMap,
    Event,
    FieldType,
    FormatDescription,
    Gtid,
    OversizedRows,
    PartialRowImage,
    Query,
    Rows,
    TableMap,
    Value,
    XaPrepare,
)

_json = msgspec.json.Encoder().encode
_FRAMES = {b"BEGIN", b"COMMIT"}  # of transactions


class LineFormat(ABC):
    """Turns the events of files, in their order, into lines."""

    def __init__(self) -> None:
        #: what had no line
        self.left_out: Counter[str] = Counter()

    @abstractmethod
    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterable[bytes]:
        """Give the lines of an event. Raises BinlogError where the format cannot tell what happened."""


class Json(LineFormat):
    """A line for each row, or for rows above the limit, and each statement, for people and their tools."""

    def __init__(self) -> None:
        super().__init__()
        self._gtid: str | None = None

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterable[bytes]:
        """Give one line for each row, or one for a statement."""
        match event:
            case Rows():
                return self._rows(event, {"type": event.action, **self._table(event, tables)}, tables[event.table])
            case OversizedRows():
                about = {"type": "oversized", **self._table(event, tables), "action": event.action, "size": event.size}
                return (_json(about) + b"\n",)
            case Gtid():
                self._gtid = event.gtid or None
            case FormatDescription():  # another file, which may have none
                self._gtid = None
            case Query() if event.query not in _FRAMES:
                place = self._place(event)
                about = {"type": "query", "schema": event.schema, **place, "thread_id": event.thread_id}
                return (_json({**about, "query": _text(event.query)}) + b"\n",)
            case XaPrepare():
                query = f"XA COMMIT {event.xid} ONE PHASE" if event.one_phase else f"XA PREPARE {event.xid}"
                return (_json({"type": "query", **self._place(event), "query": query}) + b"\n",)
        return ()

    def _rows(self, event: Rows, head: dict[str, object], table: TableMap) -> Iterator[bytes]:
        start = _json(head)[:-1]
        columns = [(column.name, _is_binary(column)) for column in table.columns]
        rows = (_json(_row(columns, image)) for image in event.images())
        if event.action == "update":
            for before in rows:
                yield b'%b,"before":%b,"after":%b}\n' % (start, before, next(rows))
        else:
            for row in rows:
                yield b'%b,"row":%b}\n' % (start, row)

    def _table(self, event: Rows | OversizedRows, tables: Mapping[str, TableMap]) -> dict[str, object]:
        table = tables[event.table]
        return {"schema": table.schema, "table": table.name, **self._place(event)}

    def _place(self, event: Event) -> dict[str, object]:
        return {
            "file": event.file,
            "start": event.start,
            "end": event.end,
            "time": event.time,
            "server_id": event.server_id,
            "gtid": self._gtid,
        }


class Messages(LineFormat):
    """The key and value of each message that the publisher writes.

    It tells a table's definition as it is after a DDL statement, which no binlog says: statements have no line.
    """

    def __init__(self) -> None:
        super().__init__()
        self._encoder = Encoder()
        self._tables: dict[str, Table] = {}

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterable[bytes]:
        """Give the one line of a rows event."""
        match event:
            case Rows():
                key, value = self._encoder.rows(self._table(event, tables), event.file, _rows_event(event))
                return (b'{"key":%b,"value":%b}\n' % (key, value),)
            case Query() if event.query not in _FRAMES:
                self.left_out["statements"] += 1
            case OversizedRows():
                self.left_out["rows above --row-limit"] += 1
        return ()

    def _table(self, event: Rows, tables: Mapping[str, TableMap]) -> Table:
        table_map = tables[event.table]
        if not event.complete:
            raise PartialRowImage(
                f"rows of {table_map.schema}.{table_map.name} at {event.file}:{event.start} lack columns "
                "(binlog_row_image is not FULL), which this format cannot tell; use --format json"
            )
        table = self._tables.get(event.table)
        if table is None:
            table = self._tables[event.table] = described_by(table_map)
        return table


FORMATS: dict[str, type[LineFormat]] = {"json": Json, "databus": Messages}


def _rows_event(event: Rows) -> RowsEvent:
    return RowsEvent(
        table=event.table, action=Action(event.action), row=0, start=event.start, end=event.end, rows=event.rows
    )


def _row(columns: list[tuple[str, bool]], image: list[Value]) -> dict[str, object]:
    """Name the values of an image, without those that are absent."""
    named = zip(columns, image, strict=True)
    return {name: _shown(value, binary) for (name, binary), value in named if value is not ABSENT}


def _shown(value: Value, binary: bool) -> object:
    if not isinstance(value, bytes):
        return None
    return {"base64": value} if binary else _text(value)


def _is_binary(column: ColumnMap) -> bool:
    return column.charset == "binary" or column.type in {FieldType.GEOMETRY, FieldType.VECTOR}


def _text(value: bytes) -> str | dict[str, bytes]:
    """Give bytes as text; as base64 where they are none."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": value}

"""The lines that are printed: what all kinds of them have in common, and those for people and their tools."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from databus_binlog import (
    ABSENT,
    AnyEvent,
    ColumnMap,
    Event,
    FieldType,
    FormatDescription,
    Gtid,
    OversizedRows,
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
        #: of a file that is read from further on
        self.head: FormatDescription | None = None
        self._left_out: Counter[str] = Counter()

    def finish(self) -> Counter[str]:
        """Count what had no line; nothing more comes."""
        return self._left_out

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

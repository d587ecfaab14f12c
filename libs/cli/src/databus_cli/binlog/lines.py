"""The lines that are printed: the interface of all formats, and the format `json`."""

from abc import ABC, abstractmethod
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
from databus_cli.binlog.files import DecoderOptions
from databus_cli.binlog.tables import Completion
from databus_cli.selection import Selection

_json = msgspec.json.Encoder().encode
#: statements that only begin or end a transaction; `json` does not print them
_FRAMES = {b"BEGIN", b"COMMIT"}


class LineFormat(ABC):
    """Turns the events of files, in their order, into lines."""

    @abstractmethod
    def decoder_options(self) -> DecoderOptions:
        """Return how to decode the files."""

    @abstractmethod
    def start(self, head: FormatDescription, *, inside: bool) -> None:
        """Prepare for the files, given the FormatDescription of the first one.

        If reading starts at a later offset of that file (`inside`), `of` does not get this event, and the command calls
        this method. Otherwise `of` calls it, if the format needs it.
        """

    @abstractmethod
    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterable[bytes]:
        """Return the lines of an event. Raises DatabusError if the format cannot continue."""

    @abstractmethod
    def finish(self) -> Iterable[str]:
        """Finish after the last file; return one line for each kind of data that was left out."""


class Json(LineFormat):
    """Makes one line for each row, each rows event above --row-limit, and each statement except BEGIN and COMMIT."""

    def __init__(self, selection: Selection, completion: Completion) -> None:
        self._selection = selection
        self._completion = completion
        self._gtid: str | None = None

    def decoder_options(self) -> DecoderOptions:
        """Decode the rows of selected tables; columns without names are @1, @2, …."""
        return {"wanted": self._selection.table, "describe": self._completion.describe}

    def start(self, head: FormatDescription, *, inside: bool) -> None:
        """Do nothing: rows are printed as they are logged."""

    def finish(self) -> Iterable[str]:
        """Return nothing: this format leaves nothing out."""
        return ()

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterable[bytes]:
        """Return one line for each row, or one line for a statement."""
        match event:
            case Rows():
                return self._rows(event, {"type": event.action, **self._table(event, tables)}, tables[event.table])
            case OversizedRows():
                about = {"type": "oversized", **self._table(event, tables), "action": event.action, "size": event.size}
                return (_json(about) + b"\n",)
            case Gtid():
                self._gtid = event.gtid or None
            case FormatDescription():  # the next file may have no GTIDs
                self._gtid = None
            case Query() if event.query not in _FRAMES and self._selection.statement(event):
                position = self._position(event)
                about = {"type": "query", "schema": event.schema, **position, "thread_id": event.thread_id}
                return (_json({**about, "query": _text(event.query)}) + b"\n",)
            case XaPrepare():
                query = f"XA COMMIT {event.xid} ONE PHASE" if event.one_phase else f"XA PREPARE {event.xid}"
                return (_json({"type": "query", **self._position(event), "query": query}) + b"\n",)
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
        return {"schema": table.schema, "table": table.name, **self._position(event)}

    def _position(self, event: Event) -> dict[str, object]:
        return {
            "file": event.file,
            "start": event.start,
            "end": event.end,
            "time": event.time,
            "server_id": event.server_id,
            "gtid": self._gtid,
        }


def _row(columns: list[tuple[str, bool]], image: list[Value]) -> dict[str, object]:
    """Return the values of a row image by column name, without absent columns."""
    named = zip(columns, image, strict=True)
    return {name: _shown(value, binary) for (name, binary), value in named if value is not ABSENT}


def _shown(value: Value, binary: bool) -> object:
    if not isinstance(value, bytes):
        return None
    return {"base64": value} if binary else _text(value)


def _is_binary(column: ColumnMap) -> bool:
    return column.charset == "binary" or column.type in {FieldType.GEOMETRY, FieldType.VECTOR}


def _text(value: bytes) -> str | dict[str, bytes]:
    """Return bytes as text, or as base64 if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": value}
